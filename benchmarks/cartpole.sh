#!/usr/bin/env bash
# CartPole-v1 with random actions: kevin's rollout beside Gymnasium and EnvPool, all from one run, in million steps a second.
# Gymnasium and EnvPool are installed with pip into a virtual environment; what cannot be installed is left out, and said.
# usage: benchmarks/cartpole.sh PATH-OF-BUILT-CARTPOLE [SECONDS]
set -euo pipefail
program=${1:?usage: benchmarks/cartpole.sh PATH-OF-BUILT-CARTPOLE [SECONDS]}
seconds=${2:-2}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$here/../build/venv-cartpole
figures=$(mktemp)
trap 'rm -f "$figures"' EXIT

"$program" "$seconds" | tee "$figures"
mkdir -p "$here/../build"
if { [[ -x $venv/bin/pip ]] || python3 -m venv "$venv"; }; then
  for package in numpy gymnasium envpool; do
    "$venv/bin/pip" install --quiet --disable-pip-version-check "$package" || echo "# $package cannot be installed here"
  done
  "$venv/bin/pip" list --disable-pip-version-check 2>/dev/null | awk '$1 ~ /^(numpy|gymnasium|envpool)$/ { print "# " $1, $2 }'
  "$venv/bin/python" -W ignore "$here/cartpole_gymnasium.py" "$seconds" | tee -a "$figures"
else
  echo "# no virtual environment can be made here: Gymnasium and EnvPool are left out"
fi

echo
awk '/^[^#]/ { name[++n] = $1; value[$1] = $2 }
  END {
    for (i = 1; i <= n; ++i)
      if (name[i] !~ /^kevin/) printf "kevin_rollout is %8.1f times %s\n", value["kevin_rollout"] / value[name[i]], name[i]
  }' "$figures"
