# Process 1 of a node, or of OLM v1: "supervise.sh LOGS SCRIPT". It adopts the orphans of pods and containerd, which Bash reaps.
set -euo pipefail
logs="$1"
export GOGC=400 # less of the processors, which others share, for more memory

# run NAME COMMAND starts a program, again when it exits: each one exits until those that it needs are available.
run() {
	while true; do
		local status=0
		"${@:2}" >>"$logs/$1.log" 2>&1 || status=$?
		echo "$(date +%T) $1 exited with status $status: starting it again" || true # on a full disk too
		sleep 0.5 # limits the load of a program that can't start
	done &
}

. "$2"
wait
