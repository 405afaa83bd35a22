// The netpbm formats: bitmaps, grey maps and pixmaps, as text (P1 P2 P3) and binary (P4 P5 P6).
#include <cctype>

#include "sluice/data/images/image.h"
#include "sluice/data/memory.h"

namespace sluice::data {
namespace {

tl::unexpected<Error> pnm_error(const std::string& cause) {
  return base::fail(Code::kDataLoss, "not a valid PNM: ", cause);
}

class PnmText {
 public:
  explicit PnmText(std::string_view text) : text_(text) {}

  // Reads the next whole number after spaces and comments, at most `limit`.
  base::Result<std::int64_t> number(std::int64_t limit) {
    skip_space();
    if (position_ == text_.size() || std::isdigit(static_cast<unsigned char>(text_[position_])) == 0)
      return pnm_error(base::str("expected a number at byte ", position_));
    std::int64_t value = 0;
    while (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])) != 0) {
      value = value * 10 + (text_[position_++] - '0');
      if (value > limit) return pnm_error(base::str("a number above ", limit, " at byte ", position_ - 1));
    }
    return value;
  }
  // Reads one digit of a P1 file, which needs no space between digits.
  base::Result<std::int64_t> bit() {
    skip_space();
    if (position_ == text_.size() || (text_[position_] != '0' && text_[position_] != '1'))
      return pnm_error(base::str("expected 0 or 1 at byte ", position_));
    return text_[position_++] - '0';
  }
  // Returns the bytes after the one space that ends the header.
  std::string_view binary() const { return text_.substr(std::min(position_ + 1, text_.size())); }
  void skip(std::size_t count) { position_ += count; }

 private:
  void skip_space() {
    while (position_ < text_.size()) {
      if (text_[position_] == '#') {
        while (position_ < text_.size() && text_[position_] != '\n') ++position_;
      } else if (std::isspace(static_cast<unsigned char>(text_[position_])) != 0) {
        ++position_;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

struct PnmHeader {
  int kind = 0;  // the digit after the P
  std::int64_t width = 0, height = 0, maximum = 1, channels = 1;
};

std::uint8_t pnm_scaled(std::int64_t value, std::int64_t maximum) {
  return static_cast<std::uint8_t>((value * 255 + maximum / 2) / maximum);
}

base::Status pnm_read_text(PnmText& text, const PnmHeader& header, std::vector<std::uint8_t>& samples) {
  for (std::uint8_t& sample : samples) {
    if (header.kind == 1) {
      SLUICE_TRY(const std::int64_t ink, text.bit());
      sample = ink != 0 ? 0 : 255;
    } else {
      SLUICE_TRY(const std::int64_t value, text.number(header.maximum));
      sample = pnm_scaled(value, header.maximum);
    }
  }
  return {};
}

base::Status pnm_read_binary(std::string_view bytes, const PnmHeader& header,
                             std::vector<std::uint8_t>& samples) {
  const std::size_t width = static_cast<std::size_t>(header.width);
  const std::size_t each = header.maximum > 255 ? 2 : 1;
  const std::size_t need =
      header.kind == 4 ? (width + 7) / 8 * static_cast<std::size_t>(header.height) : samples.size() * each;
  if (bytes.size() < need)
    return pnm_error(base::str("cut off: expected ", need, " bytes of pixels, found ", bytes.size()));
  const auto* in = reinterpret_cast<const unsigned char*>(bytes.data());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (header.kind == 4) {
      const std::size_t row = i / width, column = i % width;
      samples[i] = (in[row * ((width + 7) / 8) + column / 8] >> (7 - column % 8) & 1) != 0 ? 0 : 255;
      continue;
    }
    const std::int64_t value = each == 2 ? in[2 * i] << 8 | in[2 * i + 1] : in[i];
    if (value > header.maximum) return pnm_error(base::str("a sample of ", value, " above ", header.maximum));
    samples[i] = header.maximum == 255 ? static_cast<std::uint8_t>(value) : pnm_scaled(value, header.maximum);
  }
  return {};
}

}  // namespace

base::Result<Pixels> decode_pnm(std::string_view bytes, ColorModel model) {
  PnmHeader header;
  if (bytes.size() < 3 || bytes[0] != 'P' || bytes[1] < '1' || bytes[1] > '6')
    return pnm_error("expected P1 … P6 at the beginning");
  header.kind = bytes[1] - '0';
  PnmText text(bytes);
  text.skip(2);
  SLUICE_TRY(header.width, text.number(1 << 20));
  SLUICE_TRY(header.height, text.number(1 << 20));
  if (header.kind != 1 && header.kind != 4) {
    SLUICE_TRY(header.maximum, text.number(65535));
  }
  if (header.width == 0 || header.height == 0 || header.maximum == 0)
    return pnm_error("a width, height or maximum of zero");
  SLUICE_OK(check_pixels(header.width, header.height));
  header.channels = header.kind == 3 || header.kind == 6 ? 3 : 1;
  // Text needs at least one character for each sample: a false header must not claim memory for nothing.
  const std::int64_t count = header.width * header.height * header.channels;
  if (header.kind != 4 && count > static_cast<std::int64_t>(bytes.size()))
    return pnm_error(base::str("cut off: expected ", count, " samples, found ", bytes.size(), " bytes"));
  SLUICE_OK(
      claim_memory(static_cast<std::uint64_t>(header.width * header.height) * 4, "the pixels of a PNM"));
  std::vector<std::uint8_t> samples(static_cast<std::size_t>(count));
  if (header.kind <= 3) {
    SLUICE_OK(pnm_read_text(text, header, samples));
  } else {
    SLUICE_OK(pnm_read_binary(text.binary(), header, samples));
  }
  if (header.channels == 3) return convert_rgb({header.height, header.width, 3, std::move(samples)}, model);
  if (model == ColorModel::kGray) return Pixels{header.height, header.width, 1, std::move(samples)};
  Pixels rgb{header.height, header.width, 3, std::vector<std::uint8_t>(samples.size() * 3)};
  for (std::size_t i = 0; i < rgb.bytes.size(); ++i) rgb.bytes[i] = samples[i / 3];
  return convert_rgb(std::move(rgb), model);
}

}  // namespace sluice::data
