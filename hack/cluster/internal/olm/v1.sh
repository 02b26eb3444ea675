# The programs have a / of their own, so that this machine's registries.conf and credentials don't apply, and what they write stays
# in it. This machine's environment doesn't apply either.
root='{{.Root}}'
rm -rf "$root"
account="$root/var/run/secrets/kubernetes.io/serviceaccount"
mkdir -p "$root"/{bin,etc/containers,etc/ca,tmp,var/cache} "$account"
cp '{{.Programs}}'/bin/{catalogd,operator-controller} "$root/bin"
cp '{{.PKI}}'/catalogd.{crt,key} "$root/etc"
cp '{{.PKI}}/ca.crt' "$root/etc/ca"
cp '{{.Kubeconfig}}' "$root/etc/kubeconfig"
# Of the token of their ServiceAccount, the programs only read the name of the account.
claims=$(printf '{"sub":"system:serviceaccount:{{.Namespace}}:olm"}' | base64 -w0 | tr -d =)
printf 'eyJhbGciOiJub25lIn0.%s.' "$claims" >"$account/token"
# Each registry whose name ends in .io is the cluster's. There is no pattern for all names.
cat >"$root/etc/containers/registries.conf" <<'END'
[[registry]]
prefix = "*.io"
location = "{{.Registry}}"
insecure = true
END

in_root() {
	env -i GOGC="$GOGC" /usr/sbin/chroot "$root" "$@"
}
run catalogd in_root /bin/catalogd --kubeconfig=/etc/kubeconfig --system-namespace={{.Namespace}} --cache-dir=/var/cache/catalogd \
	--tls-cert=/etc/catalogd.crt --tls-key=/etc/catalogd.key --catalogs-server-addr={{.Addr}}:8443 --external-address={{.Addr}}:8443 \
	--webhook-server-port={{.WebhookPort}} --health-probe-bind-address={{.Addr}}:{{.CatalogsHealthPort}} --metrics-bind-address=0
run operator-controller in_root /bin/operator-controller --kubeconfig=/etc/kubeconfig --system-namespace={{.Namespace}} \
	--cache-path=/var/cache/operator-controller --catalogd-cas-dir=/etc/ca --health-probe-bind-address={{.Addr}}:{{.ExtensionsHealthPort}}
