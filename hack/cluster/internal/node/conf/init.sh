conf='{{.Conf}}' pki='{{.PKI}}' state='{{.State}}' logs='{{.Logs}}/{{.Name}}' programs='{{.Programs}}'

hostname {{.Name}}

# The node's mounts. This machine doesn't see them.
bind() {
	mkdir -p "$1" "$2"
	mount --bind "$1" "$2"
}
mount --make-rprivate /
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t tmpfs -o mode=755,size=1g tmpfs /run
mkdir /run/lock
{{range .DataDirs}}bind "$state/{{$.Name}}{{.}}" {{.}}
{{end}}bind "$state/volumes" {{.Volumes}}
mount --make-rshared / # pods must see the volumes that kubelet mounts

# The kernel modules that nodes need and can't load. They may be built in.
modprobe -qa overlay br_netfilter nf_tables 2>/dev/null || true

# The control group of all pods of the node, which kubelet expects. Its weight is that of eight processes: while something
# compiles or computes on this machine, the pods would otherwise have as much of the processor as one session of it, and what
# they must do in time would wait.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	group=/sys/fs/cgroup/{{.Cgroup}}
	mkdir "$group"
	for controller in cpu cpuset hugetlb io memory pids; do
		grep -qw "$controller" /sys/fs/cgroup/cgroup.controllers || continue
		for file in /sys/fs/cgroup/cgroup.subtree_control "$group/cgroup.subtree_control"; do
			echo "+$controller" >"$file" || {
				echo "The controllers of control groups can't be enabled. In a container this works only with the machine's own control groups (docker run --cgroupns=host)."
				exit 1
			}
		done
	done
	echo 800 >"$group/cpu.weight"
else # version 1 has a tree for each controller
	for tasks in /sys/fs/cgroup/*/tasks; do
		group="${tasks%/tasks}/{{.Cgroup}}"
		mkdir -p "$group" # cpu and cpuacct may be links to one tree
		# A new cpuset group is empty, and nothing can run in it.
		for file in cpuset.cpus cpuset.mems; do
			[ ! -e "$group/$file" ] || cat "${tasks%/tasks}/$file" >"$group/$file"
		done
		[ ! -e "$group/cpu.shares" ] || echo 8192 >"$group/cpu.shares"
	done
fi
# Like that weight, for the node's own processes. Not each kernel groups processes by session.
{ echo -5 >/proc/self/autogroup; } 2>/dev/null || true

# The node's network. This machine, or node1, adds the link.
timeout 120 bash -c 'until ip link show eth0; do sleep 0.1; done' >/dev/null 2>&1 || { echo "the link eth0 was not added within two minutes"; exit 1; }
ip link set lo up
ip addr add {{.Addr}}/30 dev eth0
ip link set eth0 up
# Not the bridge of the CNI plugin: DNS and registry listen on it before the first pod.
ip link add cni0 type bridge
ip addr add {{.Gateway}}/24 dev cni0
ip link set cni0 up
{{if eq .Number 1 -}}
# Without a default route, packets to ClusterIPs need this one until kube-proxy redirects them.
ip route add {{.ServiceNetwork}} dev cni0
{{else -}}
ip route add default via {{.Peer}}
{{end -}}
echo 1 >/proc/sys/net/ipv4/ip_forward
# That route makes the kernel send ICMP redirects, and for each one it omits the message that a Service without pods refuses
# the connection.
echo 0 >/proc/sys/net/ipv4/conf/all/send_redirects
echo 0 >/proc/sys/net/ipv4/conf/cni0/send_redirects
# The file exists when the kernel has bridge filters.
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables || echo "Pods may not reach Services whose pods are on their own node."

run containerd containerd -c "$conf/containerd.toml"
{{if eq .Number 1 -}}
# kube-controller-manager creates a folder for each claim, which belongs to root, and Kubernetes does not apply a pod's fsGroup to it.
open_volumes() {
	inotifywait -mq -e create {{.Volumes}} | while read -r _; do chmod 777 {{.Volumes}}/* || true; done # one may be deleted just now
}
run volumes open_volumes
# A power cut may cost this cluster its data.
run etcd "$programs/kubernetes/etcd" --name={{.Name}} --data-dir="$state/etcd" --log-level=warn \
	--listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 --listen-peer-urls=http://127.0.0.1:2380 \
	--initial-advertise-peer-urls=http://127.0.0.1:2380 --initial-cluster={{.Name}}=http://127.0.0.1:2380 \
	--unsafe-no-fsync --quota-backend-bytes=536870912
# The flags of request headers are for aggregated API servers: the control plane has no pod and reaches them at their pods.
run kube-apiserver "$programs/kubernetes/kube-apiserver" \
	--etcd-servers=http://127.0.0.1:2379 \
	--advertise-address={{.Addr}} --bind-address=0.0.0.0 --secure-port=6443 \
	--tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
	--service-account-issuer=https://kubernetes.default.svc.cluster.local \
	--service-account-key-file="$pki/service-accounts.key" --service-account-signing-key-file="$pki/service-accounts.key" \
	--service-cluster-ip-range={{.ServiceNetwork}} \
	--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
	--kubelet-client-certificate="$pki/apiserver-kubelet-client.crt" --kubelet-client-key="$pki/apiserver-kubelet-client.key" \
	--kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP \
	--requestheader-client-ca-file="$pki/ca.crt" --requestheader-allowed-names=front-proxy-client \
	--requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
	--proxy-client-cert-file="$pki/front-proxy.crt" --proxy-client-key-file="$pki/front-proxy.key" --enable-aggregator-routing=true \
	--audit-policy-file="$conf/audit.yaml" --audit-log-path="$logs/audit.log" \
	--allow-privileged=true --profiling=false
# The provisioner creates the volumes. Tests wait until the loss of a node is noticed, which takes 50 s by default. At the start
# each controller requests a token: with the default of 20 requests a second that takes 5 s.
run kube-controller-manager "$programs/kubernetes/kube-controller-manager" \
	--kubeconfig="$pki/controller-manager.conf" --authentication-kubeconfig="$pki/controller-manager.conf" --authorization-kubeconfig="$pki/controller-manager.conf" \
	--bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials=true --profiling=false \
	--root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/service-accounts.key" \
	--cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
	--enable-hostpath-provisioner=true --node-monitor-grace-period=20s --kube-api-qps=200 --kube-api-burst=400
run kube-scheduler "$programs/kubernetes/kube-scheduler" \
	--kubeconfig="$pki/scheduler.conf" --authentication-kubeconfig="$pki/scheduler.conf" --authorization-kubeconfig="$pki/scheduler.conf" \
	--bind-address=127.0.0.1 --leader-elect=false --profiling=false
run coredns "$programs/coredns/coredns" -conf "$conf/Corefile"
run registry "$programs/registry/docker-registry" serve "$conf/registry.yaml"
{{end -}}
run kubelet "$programs/kubernetes/kubelet" \
	--config="$conf/kubelet.yaml" --kubeconfig="$pki/{{.Name}}.conf" --hostname-override={{.Name}} --node-ip={{.Addr}} \
	{{if ne .Number 1}}--node-labels=memcached-operator.io/worker= --register-with-taints=memcached-operator.io/worker=:NoSchedule # for pods that want it
{{end}}
run kube-proxy "$programs/kubernetes/kube-proxy" --config="$conf/kube-proxy.yaml" --hostname-override={{.Name}}
