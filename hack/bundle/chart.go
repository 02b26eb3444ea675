package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// chartDir has the Helm chart: config/default, with expressions in place of what values set.
const chartDir = "charts/memcached-operator"

// chartValue is a value of the chart.
type chartValue struct {
	// name has the group of the value before a dot, if it has one. The group "settings" has environment variables of the operator.
	name string
	// path is a part of the Deployment, and its field that the value replaces. What config/default has there is the default.
	path string
	// standard is the default without such a field. If both exist, the value adds to the field.
	standard any
	what     string
}

var chartValues = []chartValue{
	{name: "image.repository", what: "Repository of the operator's image."},
	{name: "image.tag", standard: "", what: "Tag of the image. Without tag and digest, it is the image of the chart's release."},
	{name: "image.digest", standard: "", what: "Digest of the image, such as sha256:0123…."},
	{name: "imagePullSecrets", path: "pod.imagePullSecrets", standard: []any{}, what: "Secrets for the registry of the operator's image, such as [{name: registry}]. Shards, which contain this image too, use spec.pod.imagePullSecrets."},
	{name: "watchNamespaces", standard: []any{}, what: "Namespaces that the operator serves, with Roles in these only. They must exist. Empty: all namespaces, with ClusterRoles."},
	{name: "replicas", path: "spec.replicas", what: "Pods of the operator. One is active, the others replace it when it stops."},
	{name: "resources", path: "container.resources", what: "Requests and limits. The memory limit is enough for 1,000 Memcacheds of three shards."},
	{name: "args", path: "container.args", standard: []any{}, what: "More arguments of the operator, such as --zap-log-level=debug."},
	{name: "nodeSelector", path: "pod.nodeSelector", standard: map[string]any{}, what: "Labels of the nodes for the operator's pod."},
	{name: "tolerations", path: "pod.tolerations", standard: []any{}, what: "Taints of nodes that the operator's pod tolerates."},
	{name: "affinity", path: "pod.affinity", what: "Affinity of the operator's pod. The image exists for these platforms."},
	{name: "topologySpreadConstraints", path: "pod.topologySpreadConstraints", standard: []any{}, what: "How replicas spread over nodes and zones."},
	{name: "priorityClassName", path: "pod.priorityClassName", standard: "", what: "PriorityClass of the operator's pod."},
	{name: "podLabels", path: "metadata.labels", standard: map[string]any{}, what: "More labels of the operator's pod."},
	{name: "podAnnotations", path: "metadata.annotations", standard: map[string]any{}, what: "More annotations of the operator's pod."},
	{name: "volumes", path: "pod.volumes", standard: []any{}, what: "Volumes, such as the Secret of the certificate in METRICS_CERT_DIR."},
	{name: "volumeMounts", path: "container.volumeMounts", standard: []any{}, what: "Where the container mounts them."},
	{name: "networkPolicy.enabled", standard: false, what: "Create a NetworkPolicy that admits clients to the operator's metrics only."},
	{name: "crds.enabled", standard: true, what: "Install and upgrade the CRDs. Helm never deletes them: that would delete all Memcacheds."},
	{name: "settings.ALLOWED_IMAGE_PREFIXES", what: "Prefixes of spec.pod.image that users may set. Empty allows all, here and below."},
	{name: "settings.ALLOWED_POD_LABEL_PREFIXES", what: "Prefixes of labels that users may set on pods and Services."},
	{name: "settings.ALLOWED_POD_ANNOTATION_PREFIXES", what: "Prefixes of annotations that users may set on pods and Services."},
	{name: "settings.ALLOWED_PRIORITY_CLASSES", what: "Values of spec.pod.priorityClassName."},
	{name: "settings.ALLOWED_SERVICE_ACCOUNTS", what: "ServiceAccounts that users may set."},
	{name: "settings.ALLOWED_SERVICE_TYPES", what: "Types of the shards' Services: ClusterIP, LoadBalancer."},
	{name: "settings.ALLOWED_SECRET_PREFIXES", what: "Prefixes of the names of Secrets that pods and stores use."},
	{name: "settings.ALLOWED_CLIENT_PEERS", what: "Kinds of peers in spec.access.networkPolicy: PodsOfNamespace, Namespaces, Addresses."},
	{name: "settings.ALLOW_TOLERATIONS", what: "false allows no spec.pod.tolerations."},
	{name: "settings.ALLOW_AFFINITY", what: "false allows no spec.pod.affinity and nodeSelector."},
	{name: "settings.MONITORING", what: "off creates no objects for Prometheus and Grafana. Empty is auto."},
	{name: "settings.MONITORING_LABELS", what: "Labels of these objects, such as release=prometheus."},
	{name: "settings.MONITORING_NAMESPACES", what: "Namespaces of Prometheus, whose pods can connect to the metrics of the shards."},
	{name: "settings.MONITORING_INTERVAL", what: "Interval between two scrapes, such as 30s, at most 2m. Empty: Prometheus decides."},
	{name: "settings.MONITORING_DASHBOARD_NAMESPACE", what: "Namespace of the dashboards. Empty: that of the operator."},
	{name: "settings.MONITORING_TOKEN_SECRET", what: "Secret with the token by which Prometheus reads the operator's metrics."},
	{name: "settings.MONITORING_CA_SECRET", what: "Secret with the CA of the certificate in METRICS_CERT_DIR."},
	{name: "settings.METRICS_CERT_DIR", what: "Folder with the certificate of the metrics. Empty: the operator signs its own."},
	{name: "settings.CLUSTER_DOMAIN", what: "Domain of the cluster. Empty: that of the operator's pod."},
	{name: "settings.RELATED_IMAGE_MEMCACHED", what: "Image of Memcacheds that name neither image nor version. Empty: that of the chart's release."},
	{name: "settings.DEFAULT_IMAGE_UPDATES", what: "How many Memcacheds follow another default image at a time. Empty is 1."},
	{name: "settings.GOGC", what: "Percentage at which Go collects garbage."},
}

// chart returns the generated files of the chart for the objects of config/default. Its other files are written by hand.
func chart(r release, csv *v1alpha1.ClusterServiceVersion, objects []*unstructured.Unstructured) map[string][]byte {
	crds, operator := &template{}, &template{}
	var values []chartValue
	for _, object := range objects {
		kind := object.GetKind()
		switch name := object.GetName(); {
		case kind == "Namespace": // Helm creates it, or not
		case kind == "CustomResourceDefinition":
			annotations := object.GetAnnotations()
			annotations["helm.sh/resource-policy"] = "keep"
			object.SetAnnotations(annotations)
			crds.add(object)
		// For some namespaces, these two are in each of them, as in config/namespaced.
		case name == packageName+"-manager-role" || name == packageName+"-manager-rolebinding":
			operator.text.WriteString("{{- range default (list \"\") (uniq $.Values.watchNamespaces) }}\n")
			object.SetKind(operator.expression(`{{ if . }}` + strings.TrimPrefix(kind, "Cluster") + `{{ else }}` + kind + `{{ end }}`))
			object.SetNamespace(operator.expression(`{{ toJson . }}`))
			if role, found := object.Object["roleRef"].(map[string]any); found {
				role["kind"] = operator.expression(`{{ if . }}Role{{ else }}ClusterRole{{ end }}`)
			}
			operator.add(object)
			operator.text.WriteString("{{- end }}\n")
		case kind == "Deployment":
			values = operator.deployment(object.Object)
			operator.add(object)
		default:
			operator.add(object)
		}
	}
	files := chartFiles(r, csv, values)
	const head = "# Generated from config/default by \"make bundle\".\n"
	files["templates/crds.yaml"] = []byte(head + "{{- if .Values.crds.enabled }}\n" + crds.text.String() + "{{- end }}\n")
	files["templates/operator.yaml"] = []byte(head + operator.text.String())
	return files
}

// template is a template of Helm.
type template struct {
	text strings.Builder
	// places are texts in objects, each with the expression for which it stands.
	places []string
}

// expression returns a text that stands for an expression in an object.
func (t *template) expression(expression string) string {
	place := fmt.Sprintf("<expression-%d>", len(t.places))
	if strings.HasPrefix(expression, "{{-") { // it is entries of a list
		t.places = append(t.places, "- "+place, expression)
	} else {
		t.places = append(t.places, place, expression)
	}
	return place
}

// add adds an object, of which the release has the names and the namespace.
func (t *template) add(object *unstructured.Unstructured) {
	text := strings.ReplaceAll(string(encoded(object)), "{{", `{{ "{{" }}`)
	text = strings.ReplaceAll(text, "memcached-operator-system", "{{ $.Release.Namespace }}")
	text = names.ReplaceAllString(text, "$1{{ $$.Release.Name }}-")
	// All operators of a namespace wait for one Lease. Helm rejects a second release there, since this Role is the first one's.
	text = strings.ReplaceAll(text, "{{ $.Release.Name }}-leader-election-role\n", "memcached-operator-leader-election-role\n")
	t.text.WriteString("---\n" + strings.NewReplacer(t.places...).Replace(text))
}

// names are where an object has its name, and the name of another object.
var names = regexp.MustCompile(`(?m)^( *(?:- )?(?:name|serviceAccountName): )memcached-operator-`)

var imageVersion = regexp.MustCompile(`(:[^/:@]+)?(@.*)?$`)

// deployment puts expressions into the operator's Deployment, and returns the values that these refer to. The images are those
// of the chart's release until a value names another one.
func (t *template) deployment(object map[string]any) (values []chartValue) {
	spec := object["spec"].(map[string]any)
	pod := spec["template"].(map[string]any)
	podSpec := pod["spec"].(map[string]any)
	container := podSpec["containers"].([]any)[0].(map[string]any)
	parts := map[string]map[string]any{"spec": spec, "metadata": pod["metadata"].(map[string]any), "pod": podSpec, "container": container}

	image := container["image"].(string)
	version := imageVersion.FindString(image)
	fmt.Fprintf(&t.text, `{{- $version := "" }}
{{- with .Values.image.tag }}{{ $version = print ":" . }}{{ end }}
{{- with .Values.image.digest }}{{ $version = print $version "@" . }}{{ end }}
{{- $image := print .Values.image.repository (default %q $version) }}
`, version)
	container["image"] = t.expression(`{{ toJson $image }}`)
	standards, own := map[string]string{}, ""
	environment := container["env"].([]any)
	for _, entry := range environment {
		variable := entry.(map[string]any)
		name := variable["name"].(string)
		value, isText := variable["value"].(string)
		switch {
		case name == "WATCH_NAMESPACE":
			variable["value"] = t.expression(`{{ uniq $.Values.watchNamespaces | join "," | quote }}`)
		case name == "RELATED_IMAGE_AGENT":
			variable["value"] = container["image"]
		case strings.HasPrefix(name, relatedImagePrefix):
			own += " " + strconv.Quote(name)
			variable["value"] = t.expression(fmt.Sprintf("{{ default %q $.Values.settings.%s | quote }}", value, name))
		case isText:
			own += " " + strconv.Quote(name)
			standards[name] = value
			variable["value"] = t.expression("{{ join \",\" $.Values.settings." + name + " | quote }}")
		}
	}
	container["env"] = append(environment, t.expression(`{{- range $name, $value := omit $.Values.settings`+own+` }}{{ with join "," $value }}
        - name: {{ $name }}
          value: {{ quote . }}
        {{- end }}{{ end }}`))

	for _, v := range chartValues {
		group, key := v.key()
		part, name, _ := strings.Cut(v.path, ".")
		now := parts[part][name]
		format := "{{ toJson $.Values.%s }}"
		if v.standard != nil && now != nil {
			function := "concat (fromJsonArray"
			if _, isObject := now.(map[string]any); isObject {
				function = "merge (fromJson"
			}
			fixed, _ := json.Marshal(now) // it was read from YAML
			format = "{{ " + function + " `" + string(fixed) + "`) $.Values.%s | toJson }}"
		}
		switch {
		case v.name == "image.repository":
			v.standard = strings.TrimSuffix(image, version)
		case group == "settings":
			v.standard = standards[key]
		case v.standard == nil:
			v.standard = now
		}
		if v.path != "" {
			parts[part][name] = t.expression(fmt.Sprintf(format, v.name))
		}
		values = append(values, v)
	}
	return values
}
