#include "sluice/data/decode/audio.h"

#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/base/text/strings.h"
#include "sluice/data/byte_number.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

constexpr sf_count_t kPiece = 4096;  // frames that are decoded at once

struct SoundMemory {
  std::string_view bytes;
  sf_count_t position = 0;
};

SoundMemory& memory_of(void* context) { return *static_cast<SoundMemory*>(context); }

sf_count_t size_of_sound(void* context) { return static_cast<sf_count_t>(memory_of(context).bytes.size()); }

sf_count_t seek_sound(sf_count_t offset, int origin, void* context) {
  SoundMemory& memory = memory_of(context);
  const sf_count_t from = origin == SEEK_CUR   ? memory.position
                          : origin == SEEK_END ? size_of_sound(context)
                                               : 0;
  memory.position = std::clamp<sf_count_t>(from + offset, 0, size_of_sound(context));
  return memory.position;
}

sf_count_t read_sound(void* out, sf_count_t size, void* context) {
  SoundMemory& memory = memory_of(context);
  const sf_count_t step = std::clamp<sf_count_t>(size, 0, size_of_sound(context) - memory.position);
  std::memcpy(out, memory.bytes.data() + memory.position, static_cast<std::size_t>(step));
  memory.position += step;
  return step;
}

sf_count_t write_sound(const void*, sf_count_t, void*) { return 0; }
sf_count_t tell_sound(void* context) { return memory_of(context).position; }

bool is_sound(std::string_view bytes) {
  const bool wave = bytes.size() > 12 && bytes.substr(8, 4) == "WAVE" &&
                    (base::starts_with(bytes, "RIFF") || base::starts_with(bytes, "RIFX") ||
                     base::starts_with(bytes, "RF64"));
  return wave || base::starts_with(bytes, "fLaC");
}

// Compares a WAV's bytes with the length in the chunk that has its samples: libsndfile takes a cut-off file
// for a shorter one. A file that was written to a pipe does not say its length.
base::Status check_length(std::string_view bytes) {
  constexpr std::uint32_t kUnknown = 0xFFFFFFFF;
  const bool big = base::starts_with(bytes, "RIFX"), wide = base::starts_with(bytes, "RF64");
  std::optional<std::uint64_t> of_wide;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::string_view name = bytes.substr(at, 4);
    std::uint64_t size = number_at(bytes, at + 4, 4, big);
    const std::uint64_t there = bytes.size() - at - 8;
    if (wide && name == "ds64" && there >= 16) of_wide = number_at(bytes, at + 16, 8, false);
    if (name == "data") {
      if (size == kUnknown && !of_wide) return {};
      if (size == kUnknown) size = *of_wide;
      if (size <= there) return {};
      return base::fail(Code::kDataLoss, "not a valid WAV: it is cut off: its samples have ", size,
                        " bytes, and ", there, " are there");
    }
    if (size > there) return {};  // libsndfile checks this case
    at += 8 + size + size % 2;
  }
  return {};
}

}  // namespace

base::Result<Sound> decode_sound(std::string_view bytes) {
  if (!is_sound(bytes)) return base::fail(Code::kDataLoss, "not an audio file: expected FLAC or WAV");
  if (!base::starts_with(bytes, "fLaC")) SLUICE_OK(check_length(bytes));
  SoundMemory memory{bytes};
  SF_VIRTUAL_IO io{size_of_sound, seek_sound, read_sound, write_sound, tell_sound};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, decltype(&sf_close)> file(sf_open_virtual(&io, SFM_READ, &info, &memory),
                                                           &sf_close);
  if (!file) return base::fail(Code::kDataLoss, "not a valid FLAC or WAV: ", sf_strerror(nullptr));
  if (info.frames < 0 || info.channels < 1 || info.samplerate < 1)
    return base::fail(Code::kDataLoss, "not a valid FLAC or WAV: its header is damaged");
  const std::int64_t channels = info.channels, frames = info.frames;
  // A block of FLAC takes at least a bit and holds at most 65535 frames; a header may claim any number.
  if (frames > static_cast<std::int64_t>(bytes.size()) * 65536)
    return base::fail(Code::kDataLoss, "not a valid FLAC or WAV: ", frames, " frames in ", bytes.size(),
                      " bytes");
  SLUICE_OK(claim_memory(
      static_cast<std::uint64_t>(channels) * static_cast<std::uint64_t>(frames + kPiece) * sizeof(float),
      "the samples of an audio file"));
  Sound sound{Array(ElementType::kFloat32, {channels, frames}), info.samplerate};
  auto* out = sound.samples.data<float>();
  std::vector<float> piece(static_cast<std::size_t>(kPiece * channels));
  std::int64_t done = 0;
  while (done < frames) {
    const sf_count_t got =
        sf_readf_float(file.get(), piece.data(), std::min<sf_count_t>(kPiece, frames - done));
    if (got <= 0) break;
    for (std::int64_t i = 0; i < got; ++i)
      for (std::int64_t c = 0; c < channels; ++c)
        out[c * frames + done + i] = piece[static_cast<std::size_t>(i * channels + c)];
    done += got;
  }
  if (done < frames)
    return base::fail(Code::kDataLoss, "not a valid FLAC or WAV: it ends after ", done, " of ", frames,
                      " frames");
  return sound;
}

}  // namespace sluice::data
