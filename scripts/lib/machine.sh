# Sourced by the scripts beside it: what a fresh Debian machine lacks, and how things are built.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# What the build needs, and what a mount needs to run.
build_packages=(libfuse3-dev libcurl4-openssl-dev libsqlite3-dev pkg-config git ca-certificates)
run_packages=(fuse3)

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# Installs the Debian packages among the arguments that are missing.
install_packages() {
    local missing=() package
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null ||
        die "These packages are missing and this is no Debian: ${missing[*]}. Install them by hand."
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        local line="apt-get install ${missing[*]}" answer=no
        command -v sudo >/dev/null || die "These packages are missing. Run as root: $line"
        if [ -t 0 ] && [ -t 1 ]; then
            say "These packages are missing: ${missing[*]}"
            read -r -p "Install them with sudo apt-get? [y/N] " answer
        fi
        case $answer in
        [yY]*) as_root=(sudo) ;;
        *) die "These packages are missing. Run: sudo $line" ;;
        esac
    fi
    say "Installing ${missing[*]} ..."
    local log
    log=$(mktemp)
    if ! { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
            --no-install-recommends install "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        die "Installing ${missing[*]} failed (see above)."
    fi
    rm -f "$log"
}

# Ends with a clear word when there is no Swift, or one that is too old.
check_swift() {
    command -v swift >/dev/null ||
        die "Swift is not installed. Oort needs 6.2 or newer: https://www.swift.org/install/linux/"
    local version
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p')
    [ -n "$version" ] || die "\`swift --version\` did not tell its version."
    if [ "$(printf '%s\n' 6.2 "$version" | sort -V | head -n 1)" != 6.2 ]; then
        die "Swift $version is too old. Oort needs 6.2 or newer: https://www.swift.org/install/linux/"
    fi
}

# Runs a build and shows one line of progress; its whole output only when it fails.
#   with_progress WORDS COMMAND...
with_progress() {
    local words=$1 log status=0 started=$SECONDS shown=-100 step
    shift
    log=$(mktemp)
    "$@" >"$log" 2>&1 </dev/null &
    local process=$!
    while kill -0 "$process" 2>/dev/null; do
        step=$(tail -c 4000 "$log" | tr '\r' '\n' | sed -n 's/^\(\[[0-9]*\/[0-9]*\]\).*/\1/p' |
            tail -n 1)
        if [ -t 1 ]; then
            printf '\r\033[K%s %s %ds' "$words" "$step" $((SECONDS - started))
        elif [ $((SECONDS - shown)) -ge 20 ]; then
            say "$words $step $((SECONDS - started))s"
            shown=$SECONDS
        fi
        sleep 0.5
    done
    wait "$process" || status=$?
    [ ! -t 1 ] || printf '\r\033[K'
    if [ "$status" -ne 0 ]; then
        cat "$log"
        say "$words failed after $((SECONDS - started))s."
    else
        say "$words done in $((SECONDS - started))s."
    fi
    rm -f "$log"
    return "$status"
}

# Builds the program that needs neither Swift nor a certain libfuse to run (docs/decisions/0004);
# prints nothing but progress.
build_release() {
    local static=$root/.build/static
    mkdir -p "$static"
    # The linker takes the first folder that has the library in any form, and what pkg-config says
    # comes before all else: these files name the archive's folder, and not the system's.
    ln -sf "$(pkg-config --variable=libdir fuse3)/libfuse3.a" "$static/libfuse3.a"
    sed "s|^libdir=.*|libdir=$static|" "$(pkg_config_file fuse3)" >"$static/fuse3.pc"
    sed 's|^Libs:.*|Libs: -lcurl|' "$(pkg_config_file libcurl)" >"$static/libcurl.pc"
    with_progress "Building oort (the first build takes some minutes)" \
        env PKG_CONFIG_PATH="$static" swift build --package-path "$root" -c release \
        --static-swift-stdlib --disable-local-rpath --product oort
}

pkg_config_file() { printf '%s/%s.pc' "$(pkg-config --variable=pcfiledir "$1")" "$1"; }

release_binary() {
    printf '%s/oort' "$(swift build --package-path "$root" -c release --show-bin-path)"
}

# Says what hinders a mount on this machine; silence when nothing does.
check_fuse() {
    [ -e /dev/fuse ] || die "This machine has no /dev/fuse: load the module (modprobe fuse), or start the container with --device /dev/fuse --cap-add SYS_ADMIN."
}
