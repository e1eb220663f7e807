# The demo's text: the six novels in Debian's r-cran-janeaustenr, decoded to one UTF-8 file.
#
#   fetch_novels DECODER [OUT]        DECODER: the built program `novels`; OUT: build/data/austen.txt unless given
#
# Source it for the function, or run it with the same arguments. The package is fetched and unpacked, never installed: installing
# it brings the whole of R. An OUT that is there is kept; a new one appears only when complete.

# set -e has no effect in a function that is called as a condition, so every step says itself what happens when it fails.
fetch_novels() (
  set -u
  decoder=${1:?fetch_novels: name the decoder, the program novels}
  out=${2:-build/data/austen.txt}
  package=r-cran-janeaustenr
  expected=4025029 # bytes, with the version in Debian 12

  if [ -s "$out" ]; then
    echo "fetch_novels: $out is there, $(wc -c <"$out") bytes"
    exit 0
  fi
  for tool in apt-get dpkg-deb; do
    if ! command -v "$tool" >/dev/null 2>&1; then
      echo "fetch_novels: needs $tool (Debian, Ubuntu); elsewhere give a text file of your own with --text" >&2
      exit 1
    fi
  done
  if [ ! -x "$decoder" ]; then
    echo "fetch_novels: no program at $decoder; build the target novels first" >&2
    exit 1
  fi
  decoder=$(cd "$(dirname "$decoder")" && pwd)/$(basename "$decoder")
  mkdir -p "$(dirname "$out")" && folder=$(mktemp -d "$(dirname "$out")/fetch.XXXXXX") || exit 1
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 130' HUP INT TERM
  partial=$folder/austen.txt

  # As root, apt-get hands downloads to a user that may not read this folder, hence the option.
  download() { (cd "$folder" && apt-get -q -o APT::Sandbox::User=root download "$package"); }
  if ! download >"$folder/log" 2>&1; then
    # A fresh machine has no package lists yet.
    if [ "$(id -u)" = 0 ]; then
      apt-get -q update >>"$folder/log" 2>&1 || true
    elif command -v sudo >/dev/null 2>&1; then
      sudo -n apt-get -q update >>"$folder/log" 2>&1 || true
    fi
    if ! download >>"$folder/log" 2>&1; then
      cat "$folder/log" >&2
      echo "fetch_novels: cannot download $package; is there a network? A text file of your own goes with --text" >&2
      exit 1
    fi
  fi
  dpkg-deb -x "$folder"/"$package"_*.deb "$folder/package" || exit 1
  "$decoder" "$folder/package/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb" "$partial" >/dev/null ||
    exit 1
  bytes=$(wc -c <"$partial" | tr -d ' ')
  if [ "$bytes" != "$expected" ]; then
    echo "fetch_novels: note: $bytes bytes, Debian 12's package gives $expected; figures in the docs are of that text" >&2
  fi
  mv "$partial" "$out" || exit 1
  echo "fetch_novels: wrote $out, $bytes bytes"
)

case "$0" in
*fetch_novels.sh) fetch_novels "$@" ;;
esac
