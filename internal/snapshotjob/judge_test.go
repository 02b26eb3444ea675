package snapshotjob

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// seenJob returns a Job that was made so long ago, with these pods, the newest first.
func seenJob(age time.Duration, edit func(*batchv1.Job), pods ...corev1.Pod) Observed {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "backup-u", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	if edit != nil {
		edit(job)
	}
	return Observed{Name: "backup-u", Job: job, Pods: pods, Now: now}
}

// pod returns one that was made so long ago.
func pod(age time.Duration, phase corev1.PodPhase, state corev1.ContainerState, edits ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "backup-u-x", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	p.Spec.NodeName = "node1"
	p.Status.Phase = phase
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: Container, State: state}}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func finished(kind batchv1.JobConditionType, reason string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "as the Job controller says"}}
	}
}

func ended(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

func TestWhatAJobAmountsTo(t *testing.T) {
	unschedulable := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: `persistentvolumeclaim "snapshots" not found`}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	outcome := `{"reason":"ShardUnreachable","message":"shard 1 does not answer"}`
	for name, test := range map[string]struct {
		seen   Observed
		stage  Stage
		reason string
		words  string
		since  time.Duration
	}{
		"there is none":               {seen: Observed{}, stage: Absent},
		"it is another's":             {Observed{Name: "backup-u", Foreign: true}, Foreign, v1alpha1.ReasonJobCannotStart, "Job backup-u exists", 0},
		"it is being deleted":         {seen: seenJob(0, func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{} }), stage: Ending},
		"it is suspended":             {seenJob(time.Hour, func(j *batchv1.Job) { j.Spec.Suspend = new(true) }), Starting, v1alpha1.ReasonStarting, "spec.suspend", 0},
		"it has no pod yet":           {seenJob(time.Second, nil), Starting, v1alpha1.ReasonStarting, "no pod yet", time.Second},
		"it gets no pod":              {seenJob(time.Minute, nil), Stuck, v1alpha1.ReasonJobCannotStart, "kubectl describe job backup-u", time.Minute},
		"it has no pod between tries": {seenJob(time.Hour, func(j *batchv1.Job) { j.Status.Failed = 1 }), Starting, v1alpha1.ReasonStarting, "no pod yet", time.Hour},
		"its pod starts":              {seenJob(time.Hour, nil, pod(time.Second, corev1.PodPending, waiting("ContainerCreating", ""))), Starting, v1alpha1.ReasonStarting, "starts", time.Second},
		"its volume does not come":    {seenJob(time.Hour, nil, pod(time.Minute, corev1.PodPending, waiting("ContainerCreating", ""))), Stuck, v1alpha1.ReasonJobCannotStart, "PersistentVolumeClaim snapshots there", time.Minute},
		"its claim is missing":        {seenJob(time.Hour, nil, pod(time.Second, corev1.PodPending, corev1.ContainerState{}, unschedulable)), Stuck, v1alpha1.ReasonJobCannotStart, `"snapshots" not found`, time.Second},
		"its Secret is missing":       {seenJob(time.Hour, nil, pod(time.Second, corev1.PodPending, waiting("CreateContainerConfigError", `secret "s" not found`))), Stuck, v1alpha1.ReasonJobCannotStart, `CreateContainerConfigError: secret "s" not found`, time.Second},
		"its image cannot be pulled":  {seenJob(time.Hour, nil, pod(time.Second, corev1.PodPending, waiting("ImagePullBackOff", ""))), Stuck, v1alpha1.ReasonJobCannotStart, "ImagePullBackOff", time.Second},
		"nobody schedules it":         {seenJob(time.Hour, nil, pod(time.Minute, corev1.PodPending, corev1.ContainerState{}, func(p *corev1.Pod) { p.Spec.NodeName = "" })), Stuck, v1alpha1.ReasonJobCannotStart, "no scheduler", time.Minute},
		"its pod is at work":          {seenJob(time.Hour, nil, pod(time.Minute, corev1.PodRunning, running)), Copying, v1alpha1.ReasonCopying, "at work", 0},
		"its pod has just succeeded":  {seenJob(time.Hour, nil, pod(time.Minute, corev1.PodSucceeded, ended(0, "Completed", ""))), Copying, v1alpha1.ReasonCopying, "", 0},
		"its pod is evicted":          {seenJob(time.Hour, nil, pod(time.Minute, corev1.PodRunning, running, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} })), Starting, v1alpha1.ReasonStarting, "takes its place", 0},
		"another try follows":         {seenJob(time.Hour, nil, pod(time.Minute, corev1.PodFailed, ended(1, "Error", outcome))), Starting, v1alpha1.ReasonStarting, "(ShardUnreachable): shard 1 does not answer; another one follows", 0},
		"it succeeded":                {seenJob(0, finished(batchv1.JobComplete, ""), pod(0, corev1.PodSucceeded, ended(0, "Completed", `{"reason":"Succeeded","items":3}`))), Succeeded, v1alpha1.ReasonSucceeded, "", 0},
		"it failed":                   {seenJob(0, finished(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded), pod(0, corev1.PodFailed, ended(1, "Error", outcome))), Failed, v1alpha1.ReasonShardUnreachable, "shard 1 does not answer", 0},
		"it failed without a pod":     {seenJob(0, finished(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)), Failed, v1alpha1.ReasonJobFailed, "as the Job controller says", 0},
		"its pod was evicted for good": {seenJob(0, finished(batchv1.JobFailed, ""), pod(0, corev1.PodFailed, corev1.ContainerState{}, func(p *corev1.Pod) {
			p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: ephemeral-storage."
		})), Failed, v1alpha1.ReasonJobFailed, "Evicted: The node was low on resource", 0},
		"it took too much memory":      {seenJob(0, finished(batchv1.JobFailed, ""), pod(0, corev1.PodFailed, ended(137, "OOMKilled", ""))), Failed, v1alpha1.ReasonJobFailed, "more memory than its limit", 0},
		"a message that is no outcome": {seenJob(0, finished(batchv1.JobFailed, ""), pod(0, corev1.PodFailed, ended(2, "Error", "panic: x"))), Failed, v1alpha1.ReasonJobFailed, "panic: x", 0},
		"it took too long, and said": {seenJob(0, finished(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded), pod(0, corev1.PodFailed, ended(1, "Error", outcome))), Failed, v1alpha1.ReasonDeadlineExceeded,
			"its last pod said ShardUnreachable", 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := Judge(test.seen, claim)
			if v.Stage != test.stage || v.Reason != test.reason || !strings.Contains(v.Message, test.words) {
				t.Errorf("stage %d (%s): %s", v.Stage, v.Reason, v.Message)
			}
			if test.since != 0 && now.Sub(v.Since) != test.since {
				t.Errorf("since %s", v.Since)
			}
		})
	}
}

func TestWhatIsToBeDoneAboutAJob(t *testing.T) {
	run := func(phase v1alpha1.RunPhase, uid string) v1alpha1.RunStatus {
		return v1alpha1.RunStatus{Phase: phase, JobUID: uid}
	}
	copied := run(v1alpha1.RunRunning, "u")
	copied.Progress = &v1alpha1.RunProgress{}
	expires := finished(batchv1.JobComplete, "")
	for name, test := range map[string]struct {
		status v1alpha1.RunStatus
		seen   Observed
		want   Act
	}{
		"before it begins":                    {run("", ""), Observed{}, Leave},
		"it is to be made":                    {run(v1alpha1.RunRunning, ""), Observed{}, Create},
		"it is gone":                          {run(v1alpha1.RunRunning, "u"), Observed{}, Leave},
		"it runs":                             {run(v1alpha1.RunRunning, "u"), seenJob(time.Hour, nil, pod(time.Hour, corev1.PodRunning, corev1.ContainerState{})), Leave},
		"it gets no pod, for a moment":        {run(v1alpha1.RunRunning, "u"), seenJob(StuckBound-time.Second, nil), Leave},
		"it gets no pod":                      {run(v1alpha1.RunRunning, "u"), seenJob(StuckBound, nil), Remove},
		"it has lost its pod just now":        {copied, seenJob(time.Hour, nil), Leave},
		"its pod cannot start, for a moment":  {run(v1alpha1.RunRunning, "u"), seenJob(time.Hour, nil, pod(StuckBound-time.Second, corev1.PodPending, waiting("ErrImagePull", ""))), Leave},
		"its pod cannot start":                {run(v1alpha1.RunRunning, "u"), seenJob(time.Hour, nil, pod(StuckBound, corev1.PodPending, waiting("ErrImagePull", ""))), Remove},
		"it has ended, which is not told yet": {run(v1alpha1.RunRunning, "u"), seenJob(0, expires), Leave},
		"it has ended":                        {run(v1alpha1.RunComplete, "u"), seenJob(0, expires), Expire},
		"it is to expire already":             {run(v1alpha1.RunFailed, "u"), seenJob(0, func(j *batchv1.Job) { expires(j); j.Spec.TTLSecondsAfterFinished = new(int32(600)) }), Leave},
		"it goes on although all is told":     {run(v1alpha1.RunFailed, "u"), seenJob(0, nil), Remove},
	} {
		if got := ActFor(test.status, test.seen, Judge(test.seen, claim)); got != test.want {
			t.Errorf("%s: act %d, want %d", name, got, test.want)
		}
	}
}

func TestAJobThatIsBeingDeletedLeavesTheStatusAsItIs(t *testing.T) {
	s := Begin(v1alpha1.RunStatus{JobUID: "u"}, 1, "backup-u", "", now)
	s = Next(s, 1, Verdict{Stage: Stuck, Reason: v1alpha1.ReasonJobCannotStart, Message: "no secret"}, "u", now)
	if next := Next(s, 1, Verdict{Stage: Ending}, "u", now); next.Reason != v1alpha1.ReasonJobCannotStart || next.Phase != v1alpha1.RunRunning {
		t.Errorf("it is %+v", next)
	}
	gone := Next(s, 1, Verdict{Stage: Absent}, "", now)
	if gone.Phase != v1alpha1.RunFailed || gone.Reason != v1alpha1.ReasonJobCannotStart || gone.Message != "no secret" {
		t.Errorf("once it is gone, it is %+v", gone)
	}
}

func TestAnEndDoesNotWaitForEver(t *testing.T) {
	s := Begin(v1alpha1.RunStatus{}, 1, "backup-u", "", now)
	s = Hold(s, 1, v1alpha1.ReasonJobCannotStart, "exceeded quota", now)
	if next := Next(s, 1, Verdict{Stage: Absent}, "", now.Add(StuckBound-time.Second)); HasEnded(next) {
		t.Errorf("it has ended: %+v", next)
	}
	if next := Next(s, 1, Verdict{Stage: Absent}, "", now.Add(StuckBound)); next.Phase != v1alpha1.RunFailed || next.Message != "exceeded quota" {
		t.Errorf("it is %+v", next)
	}
}

func TestProgressSaysAllOnlyAtTheEnd(t *testing.T) {
	for _, test := range []struct {
		items, total int64
		want         int32
	}{{0, 0, 0}, {5, 0, 0}, {0, 10, 0}, {5, 10, 50}, {10, 10, 99}, {1999, 2000, 99}, {20, 10, 99}, {1 << 62, 1 << 62, 99}} {
		if got := percent(test.items, test.total); got != test.want {
			t.Errorf("%d of %d is %d per cent, want %d", test.items, test.total, got, test.want)
		}
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	s := Wait(v1alpha1.RunStatus{}, 1, "R", strings.Repeat("ä", 2000), now)
	if len(s.Message) > 1024 || !utf8.ValidString(s.Message) || !strings.HasSuffix(s.Message, "ä…") {
		t.Errorf("%d bytes, ending in %q", len(s.Message), s.Message[len(s.Message)-8:])
	}
}

func TestAPodIsAskedOverTheNetwork(t *testing.T) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/progress" {
			http.NotFound(w, r)
			return
		}
		if err := json.NewEncoder(w).Encode(snapshotapi.Progress{TaskID: "u", Items: 3}); err != nil {
			t.Error(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(answer))
	asker := NewHTTP()
	if asker.port != strconv.Itoa(snapshotapi.Port) {
		t.Errorf("a pod is asked on port %s", asker.port)
	}
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	asker.port = port
	got, err := asker.Progress(t.Context(), host)
	if diff := cmp.Diff(snapshotapi.Progress{TaskID: "u", Items: 3}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	server.Close()
	if _, err := asker.Progress(t.Context(), host); err == nil {
		t.Error("a pod that is gone answers")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := asker.Progress(cancelled, host); err == nil {
		t.Error("a cancelled question is answered")
	}
}
