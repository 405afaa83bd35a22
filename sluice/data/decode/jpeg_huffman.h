// The entropy-coded part of ordinary JPEG files, nearly twice as fast as libjpeg reads it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>
// jpeglib.h needs cstdio before it.
#include <jpeglib.h>

namespace sluice::data {

// Reads the coefficients of a sequential file of one scan without restart markers, and leaves all else to
// libjpeg: the inverse transform, the colours, and every file that is in any way odd. Threads: one at a time;
// an object serves one picture after the other and keeps its tables while the files have the same ones.
class JpegHuffman {
 public:
  // After jpeg_start_decompress, with the file's bytes in libjpeg's source: takes the place of libjpeg's
  // Huffman decoder until the picture is done or given up. False, and nothing is changed, where the file is
  // of another kind, or so small that making its tables for it alone is not worth it.
  bool take_over(jpeg_decompress_struct& info);
  // After jpeg_crop_scanline: coefficients of blocks left of and right of these pixels need not be kept.
  void keep_columns(const jpeg_decompress_struct& info, JDIMENSION left, JDIMENSION width);
  // After the last row, before jpeg_finish_decompress: libjpeg goes on behind the scan.
  void hand_back(jpeg_decompress_struct& info) const;
  // Whether libjpeg's error_exit was called from here, because of data that only libjpeg knows how to treat:
  // the picture is to be read again without take_over.
  bool gave_up() const { return gave_up_; }

 private:
  static constexpr int kLookupBits = 10;

  struct Table {
    std::uint8_t counts[17]{};  // as in JHUFF_TBL: codes of each length, symbols in the order of codes
    std::uint8_t symbols[256]{};
    bool made = false;
    std::uint32_t entries[1 << kLookupBits]{};
    std::int64_t past[17]{};   // one more than the last code of a length
    std::int64_t first[17]{};  // the number of a length's first symbol, less its code
    int largest = 0;           // bits of a number

    bool ready(const JHUFF_TBL& table, int bits, bool now);
    void make();
    std::uint32_t entry_of(unsigned symbol, unsigned length) const;
    std::uint32_t search(std::uint64_t held) const;
  };
  // The next bits, the first one on top; `count` of them are certain.
  struct Bits {
    const std::uint8_t* at = nullptr;
    std::uint64_t held = 0;
    unsigned count = 0;

    void refill();
    void drop(std::uint32_t entry);
  };
  struct Block {
    const Table *dc = nullptr, *ac = nullptr;
    int component = 0;
    bool dc_only = false;
  };

  static boolean read_mcu(j_decompress_ptr info, JBLOCKROW* blocks);
  template <bool kKeep>
  void read_blocks(JBLOCKROW* blocks);
  void read_unit(JBLOCKROW* blocks);  // nothing: passes over it
  void read_blocks_bmi2(JBLOCKROW* blocks);
  void skip_blocks_bmi2();
  void unstuff();

  std::vector<std::uint8_t> plain_;    // bytes of the scan without stuffing, then zeros
  const std::uint8_t* end_ = nullptr;  // of what there is in plain_
  const std::uint8_t *raw_ = nullptr, *raw_end_ = nullptr;
  bool ended_ = false;  // raw_ is at a marker or the file's end
  Bits bits_;
  Table dc_[NUM_HUFF_TBLS], ac_[NUM_HUFF_TBLS];
  Block blocks_[D_MAX_BLOCKS_IN_MCU];
  int block_count_ = 0;
  std::uint32_t last_dc_[MAX_COMPS_IN_SCAN]{};
  JDIMENSION column_ = 0, columns_ = 0, keep_from_ = 0, keep_to_ = 0;
  bool bad_code_ = false, gave_up_ = false;
};

}  // namespace sluice::data
