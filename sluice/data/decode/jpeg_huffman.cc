#include "sluice/data/decode/jpeg_huffman.h"

#include <algorithm>
#include <array>
#include <cstring>
// jerror.h needs jpeglib.h before it.
#include <jerror.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define SLUICE_BMI2 __attribute__((target("bmi2")))
#endif

namespace sluice::data {
namespace {

constexpr std::size_t kLarge = 4096;  // bytes of a scan that is worth tables of its own
constexpr std::size_t kPlainBytes = 1 << 15;
// What the largest unit takes: ten blocks of 64 coefficients with at most 27 bits each.
constexpr std::size_t kUnitBytes = 10 * 64 * 27 / 8 + 16;

// A table's entry: how many bits a code and the number after it take together, how many the code alone, how
// many the number, and how many zeros stand before it.
constexpr std::uint32_t kRunShift = 24, kSizeShift = 16, kCodeShift = 8;
constexpr std::uint32_t kEndOfBlock = 63;        // so many zeros are always too many
constexpr int kLargestDc = 11, kLargestAc = 10;  // bits of a number, in 8-bit pictures

// Where the coefficients of the zigzag order belong; those past the last one are libjpeg's to the same place.
constexpr std::array<std::uint8_t, 128> zigzag() {
  std::array<std::uint8_t, 128> order{};
  for (auto& place : order) place = 63;
  int row = 0, column = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    order[i] = static_cast<std::uint8_t>(8 * row + column);
    const bool up = (row + column) % 2 == 0;
    int& forward = up ? column : row;
    int& back = up ? row : column;
    if (forward == 7) {
      ++back;
    } else {
      ++forward;
      if (back > 0) --back;
    }
  }
  return order;
}
constexpr auto kZigzag = zigzag();

std::uint64_t load_big_endian(const std::uint8_t* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

// The number after a code: a first bit of zero says that it is negative.
inline int number_after(std::uint64_t held, std::uint32_t entry) {
  const std::uint64_t after = held << (entry >> kCodeShift & 31);
  const unsigned size = entry >> kSizeShift & 15;
  const auto magnitude = static_cast<int>(after >> 1 >> (63 - size));
  const auto negative = static_cast<int>(~(static_cast<std::int64_t>(after) >> 63));
  return magnitude + (negative & (1 - (1 << size)));
}

// The head of libjpeg's struct jpeg_entropy_decoder, which jpeglib.h only names: the same in IJG's library
// since version 6b and in all of libjpeg-turbo's.
struct EntropyDecoder {
  void (*start_pass)(j_decompress_ptr);
  boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW*);
};

int scaled_size(const jpeg_component_info& component) {
#if JPEG_LIB_VERSION >= 70
  return component.DCT_h_scaled_size;
#else
  return component.DCT_scaled_size;
#endif
}

}  // namespace

inline void JpegHuffman::Bits::refill() {
  held |= load_big_endian(at) >> count;
  at += (63 - count) >> 3;
  count |= 56;
}

inline void JpegHuffman::Bits::drop(std::uint32_t entry) {
  held <<= entry & 63;
  count -= entry & 63;
}

// 0 for what 8-bit pictures do not have.
std::uint32_t JpegHuffman::Table::entry_of(unsigned symbol, unsigned length) const {
  const std::uint32_t size = symbol & 15;
  std::uint32_t run = symbol >> 4;
  if (size > static_cast<unsigned>(largest) || (largest == kLargestDc && run > 0)) return 0;
  if (largest == kLargestAc && size == 0 && run < 15) run = kEndOfBlock;
  return run << kRunShift | size << kSizeShift | length << kCodeShift | (length + size);
}

// Of a table that libjpeg has found sound; one that the picture before did not have is only noted unless
// `now`.
bool JpegHuffman::Table::ready(const JHUFF_TBL& table, int bits, bool now) {
  std::size_t total = 0;
  for (int length = 1; length <= 16; ++length) total += table.bits[length];
  const bool same = largest == bits && std::memcmp(counts + 1, table.bits + 1, 16) == 0 &&
                    std::memcmp(symbols, table.huffval, std::min<std::size_t>(total, 256)) == 0;
  if (!same) {
    largest = bits;
    std::memcpy(counts, table.bits, sizeof counts);
    std::memcpy(symbols, table.huffval, sizeof symbols);
    made = false;
  }
  if (!made && (same || now)) make();
  return made;
}

void JpegHuffman::Table::make() {
  std::fill(std::begin(entries), std::end(entries), 0);
  std::int64_t code = 0, number = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1) {
    first[length] = number - code;
    for (int i = 0; i < counts[length] && number < 256; ++i, ++code, ++number) {
      if (length > kLookupBits || code >> length != 0) continue;
      const std::int64_t width = std::int64_t{1} << (kLookupBits - length);
      std::fill_n(entries + code * width, width, entry_of(symbols[number], length));
    }
    past[length] = code;
  }
  made = true;
}

// For codes longer than the lookup; 0: there is no such code, or it means nothing in an 8-bit picture.
std::uint32_t JpegHuffman::Table::search(std::uint64_t held) const {
  for (unsigned length = 1; length <= 16; ++length) {
    const auto code = static_cast<std::int64_t>(held >> (64 - length));
    if (code < past[length]) return entry_of(symbols[(code + first[length]) & 255], length);
  }
  return 0;
}

bool JpegHuffman::take_over(jpeg_decompress_struct& info) {
  gave_up_ = bad_code_ = ended_ = false;
  if (info.progressive_mode || info.arith_code || info.data_precision != 8 || info.restart_interval != 0 ||
      info.Ss != 0 || info.Se != 63 || info.Ah != 0 || info.Al != 0 || info.unread_marker != 0 ||
      jpeg_has_multiple_scans(&info))
    return false;
  const bool large = info.src->bytes_in_buffer >= kLarge;
  bool ready = true;
  for (int i = 0; i < info.comps_in_scan; ++i) {
    const jpeg_component_info& component = *info.cur_comp_info[i];
    const JHUFF_TBL* dc = info.dc_huff_tbl_ptrs[component.dc_tbl_no];
    const JHUFF_TBL* ac = info.ac_huff_tbl_ptrs[component.ac_tbl_no];
    if (dc == nullptr || ac == nullptr || !component.component_needed) return false;
    const bool dc_ready = dc_[component.dc_tbl_no].ready(*dc, kLargestDc, large);
    const bool ac_ready = ac_[component.ac_tbl_no].ready(*ac, kLargestAc, large);
    ready = ready && dc_ready && ac_ready;
    last_dc_[i] = 0;
  }
  if (!ready) return false;
  block_count_ = info.blocks_in_MCU;
  for (int i = 0; i < block_count_; ++i) {
    const int number = info.MCU_membership[i];
    const jpeg_component_info& component = *info.cur_comp_info[number];
    blocks_[i] = {&dc_[component.dc_tbl_no], &ac_[component.ac_tbl_no], number, scaled_size(component) <= 1};
  }
  column_ = keep_from_ = 0;
  columns_ = keep_to_ = info.MCUs_per_row;
  raw_ = info.src->next_input_byte;
  raw_end_ = raw_ + info.src->bytes_in_buffer;
  plain_.resize(kPlainBytes + 2 * kUnitBytes);
  bits_ = {plain_.data(), 0, 0};
  end_ = plain_.data();
  info.client_data = this;
  reinterpret_cast<EntropyDecoder*>(info.entropy)->decode_mcu = read_mcu;
  return true;
}

void JpegHuffman::keep_columns(const jpeg_decompress_struct& info, JDIMENSION left, JDIMENSION width) {
  int least = scaled_size(info.comp_info[0]);
  for (int i = 1; i < info.num_components; ++i) least = std::min(least, scaled_size(info.comp_info[i]));
  const auto unit = static_cast<JDIMENSION>(info.comps_in_scan == 1 ? least : least * info.max_h_samp_factor);
  // One more on either side: what libjpeg transforms is its own business.
  keep_from_ = std::max<JDIMENSION>(left / unit, 1) - 1;
  keep_to_ = std::min((left + width + unit - 1) / unit + 1, columns_);
}

void JpegHuffman::hand_back(jpeg_decompress_struct& info) const {
  info.src->next_input_byte = raw_;
  info.src->bytes_in_buffer = static_cast<std::size_t>(raw_end_ - raw_);
}

// Moves what is left to the front and puts more behind it. 0xFF stands as 0xFF 0x00 in a file; before
// anything else it is a marker, and the end.
void JpegHuffman::unstuff() {
  const auto left = static_cast<std::size_t>(end_ - bits_.at);
  std::memmove(plain_.data(), bits_.at, left);
  bits_.at = plain_.data();
  std::uint8_t* out = plain_.data() + left;
  const std::uint8_t* const limit = plain_.data() + kPlainBytes;
  while (out < limit && !ended_) {
    const auto room =
        std::min(static_cast<std::size_t>(limit - out), static_cast<std::size_t>(raw_end_ - raw_));
    const auto* mark = room == 0 ? nullptr : static_cast<const std::uint8_t*>(std::memchr(raw_, 0xFF, room));
    const std::size_t step = mark == nullptr ? room : static_cast<std::size_t>(mark - raw_);
    std::memcpy(out, raw_, step);
    out += step;
    raw_ += step;
    if (raw_ == raw_end_ || (mark != nullptr && (raw_ + 1 == raw_end_ || raw_[1] != 0))) {
      ended_ = true;
    } else if (mark != nullptr) {
      *out++ = 0xFF;
      raw_ += 2;
    }
  }
  end_ = out;
  if (ended_) std::memset(out, 0, kUnitBytes);
}

template <bool kKeep>
[[gnu::always_inline]] inline void JpegHuffman::read_blocks(JBLOCKROW* blocks) {
  Bits bits = bits_;
  for (int i = 0; i < block_count_; ++i) {
    const Block& kind = blocks_[i];
    bits.refill();
    std::uint32_t entry = kind.dc->entries[bits.held >> (64 - kLookupBits)];
    if (entry == 0) [[unlikely]]
      entry = kind.dc->search(bits.held);
    bad_code_ = bad_code_ || entry == 0;
    std::uint32_t& last = last_dc_[kind.component];
    last += static_cast<std::uint32_t>(number_after(bits.held, entry));
    bits.drop(entry);
    JCOEF* const block = kKeep ? *blocks[i] : nullptr;
    if (kKeep) block[0] = static_cast<JCOEF>(last);
    const bool keep = kKeep && !kind.dc_only;
    const std::uint32_t* const entries = kind.ac->entries;
    std::uint32_t k = 1;
    const auto one = [&]() __attribute__((always_inline)) {
      entry = entries[bits.held >> (64 - kLookupBits)];
      if (entry == 0) [[unlikely]] {
        entry = kind.ac->search(bits.held);
        if (entry == 0) {
          bad_code_ = true;
          entry = kEndOfBlock << kRunShift;
        }
      }
      k += entry >> kRunShift;
      if (keep) block[kZigzag[k]] = static_cast<JCOEF>(number_after(bits.held, entry));
      bits.drop(entry);
      ++k;
    };
    while (k < 64) {
      bits.refill();
      one();
      if (k < 64) one();
    }
  }
  bits_ = bits;
}

#ifdef SLUICE_BMI2
SLUICE_BMI2 void JpegHuffman::read_blocks_bmi2(JBLOCKROW* blocks) { read_blocks<true>(blocks); }
SLUICE_BMI2 void JpegHuffman::skip_blocks_bmi2() { read_blocks<false>(nullptr); }
#endif

void JpegHuffman::read_unit(JBLOCKROW* blocks) {
#ifdef SLUICE_BMI2
  static const bool has_bmi2 = __builtin_cpu_supports("bmi2") > 0;
  if (has_bmi2) return blocks != nullptr ? read_blocks_bmi2(blocks) : skip_blocks_bmi2();
#endif
  blocks != nullptr ? read_blocks<true>(blocks) : read_blocks<false>(nullptr);
}

boolean JpegHuffman::read_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
  auto& self = *static_cast<JpegHuffman*>(info->client_data);
  if (!self.ended_ && self.end_ - self.bits_.at < static_cast<std::ptrdiff_t>(kUnitBytes)) self.unstuff();
  const bool keep = blocks != nullptr && self.column_ >= self.keep_from_ && self.column_ < self.keep_to_;
  self.column_ = self.column_ + 1 == self.columns_ ? 0 : self.column_ + 1;
  self.read_unit(keep ? blocks : nullptr);
  // Bits that were taken from behind the end.
  const bool over =
      self.ended_ && 8 * (self.bits_.at - self.end_) > static_cast<std::ptrdiff_t>(self.bits_.count);
  if (!over && !self.bad_code_) return TRUE;
  self.gave_up_ = true;
  info->err->msg_code = JWRN_HUFF_BAD_CODE;
  info->err->error_exit(reinterpret_cast<j_common_ptr>(info));
  return FALSE;
}

}  // namespace sluice::data
