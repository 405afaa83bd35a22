#!/usr/bin/env bash
# libfuzzer.sh TARGET [LIBFUZZER'S FLAGS…]: builds a target with clang's libFuzzer and sanitizers, and runs it on a copy
# of the corpus. CLANG names the compiler (clang++-14, else clang++).
set -euo pipefail
cd "$(dirname "$0")/../.."
target="$1"
shift
clang="${CLANG:-$(command -v clang++-14 || command -v clang++)}"
out=build/fuzz
mkdir -p "$out/$target"
sources=(sluice/text/{.,characters,models,steps,tools}/*.cc sluice/data/{.,shards,images,augment,order,decode}/*.cc
  sluice/cloud/{.,stores}/*.cc sluice/base/*.cc sluice/profile/service/grpc_connection.cc sluice/profile/service/profiler_messages.cc)
keep=()
for source in "${sources[@]}"; do
  case "$source" in
    *_test.cc | */test_server.cc | */torch_adapter.cc) ;;
    *) keep+=("$source") ;;
  esac
done
read -ra libraries <<<"$(pkg-config --cflags --libs libdeflate spng libwebp libwebpdemux libtiff-4 libavif sndfile libzstd \
  zlib libjpeg libcurl libcrypto libpcre2-8 icu-uc libnghttp2 pugixml fmt spdlog)"
"$clang" -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. "tests/fuzz/$target.cc" "${keep[@]}" \
  -o "$out/fuzz_$target" "${libraries[@]}" -lgif -pthread
corpora=("$target")
[[ "$target" != images ]] || corpora=(gif bmp tiff avif animation)
for corpus in "${corpora[@]}"; do cp -n "tests/fuzz/corpus/$corpus"/* "$out/$target/"; done
exec "$out/fuzz_$target" "$out/$target" "$@"
