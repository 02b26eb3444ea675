package manifests

import (
	"encoding/json"
	"testing"

	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
)

func TestATagThatOnlyBeginsLikeAVersionTellsNone(t *testing.T) {
	for image, want := range map[string]string{
		"memcached:1.6.45":        "1.6.45",
		"memcached:1.6.45-alpine": "1.6.45",
		"memcached:1.6.45_3":      "1.6.45",
		"memcached:1.6.45rc1":     "",
		"memcached:1.6.45.1":      "",
		"memcached:1.6":           "",
		"memcached:v1.6.45":       "",
	} {
		if got := versionOf(image); got != want {
			t.Errorf("%s holds version %q, want %q", image, got, want)
		}
	}
}

// A pod must not be replaced for what nobody asked of it.
func TestWhatWasAskedOfAPodIsReadInWholeOrNotAtAll(t *testing.T) {
	m := memcached(1, nil)
	whole := map[string]any{}
	if err := json.Unmarshal([]byte(Ask(&m.Spec, Image{Reference: fallback}).String()), &whole); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"memory", "maxItemSize", "connections", "threads", "image"} {
		part := map[string]any{}
		for name, value := range whole {
			if name != field {
				part[name] = value
			}
		}
		if len(part) == len(whole) {
			t.Errorf("%s is not asked of a pod", field)
		}
		text, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadAsked(string(text)); err == nil {
			t.Errorf("it is read without %s", field)
		}
	}
	whole["resources"] = map[string]any{"limits": map[string]any{"cpu": "1e1.5"}}
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAsked(string(text)); err == nil {
		t.Error("it is read with resources that cannot be")
	}
}

func TestASurgeIsASecondPodOfThatShardAlone(t *testing.T) {
	m := memcached(2, nil)
	objects, err := Build(m, func(ordinal int) Shard {
		return Shard{Asked: Ask(&m.Spec, Image{Reference: fallback}), Surge: ordinal == 1}
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	replicas := map[string]int32{}
	for _, o := range objects {
		if set, ok := o.Apply.(*appsv1ac.ReplicaSetApplyConfiguration); ok {
			replicas[o.Key.Name] = *set.Spec.Replicas
		}
	}
	if len(replicas) != 2 || replicas["cache-0"] != 1 || replicas["cache-1"] != 2 {
		t.Errorf("the ReplicaSets have %v pods", replicas)
	}
}
