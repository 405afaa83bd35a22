// Sequence packing: sequences of one fixed length, filled with whole documents, so that little of a batch is
// padding. First fit over a window: a document goes into the first open sequence, in the order of opening,
// that has room for it. If no sequence has room, a new one is opened; when more than `window` are open, the
// first of them is handed out as it is. A full sequence is handed out at once.
//
// The result depends only on the documents' lengths in their order. So a reader that stopped resumes exactly:
// it adds the lengths of the documents from the epoch's start again, without reading them, until the number
// of sequences that it had taken have come out, and then reads the documents that waiting() names.
#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/data/length_shape.h"

namespace sluice::data {

// A document in a sequence.
struct PackedDocument {
  std::int64_t document = 0;  // its number among all that were added, from 0
  std::int64_t begin = 0;     // where it begins in the sequence
  std::int64_t length = 0;    // its length in the sequence
  bool operator==(const PackedDocument&) const = default;
};

struct PackedSequence {
  std::vector<PackedDocument> documents;  // one after the other, without gaps
  std::int64_t used() const {
    return documents.empty() ? 0 : documents.back().begin + documents.back().length;
  }
  bool operator==(const PackedSequence&) const = default;
};

// Threads: one at a time.
class SequencePacker {
 public:
  // `window`: the number of sequences that are open at a time; from 1 on.
  SequencePacker(std::int64_t length, std::int64_t window, TooLong too_long = TooLong::kError);

  // Adds the next document. An empty one has its number and takes no place. Sequences that it completes are
  // appended to `done`. kInvalidArgument for a document that is too long.
  base::Status add(std::int64_t length, std::vector<PackedSequence>& done);
  // Appends the open sequences, at the end of an epoch.
  void finish(std::vector<PackedSequence>& done);

  std::vector<std::int64_t> waiting() const;  // the documents in open sequences, in ascending order
  std::int64_t documents() const { return documents_; }
  std::int64_t cut() const { return cut_; }  // documents that were cut so far

 private:
  void give(std::size_t place, std::vector<PackedSequence>& done);

  std::int64_t length_;
  std::size_t window_;
  TooLong too_long_;
  std::int64_t documents_ = 0, cut_ = 0;
  // The open sequences in the order in which they were opened: where each one is in slots_, and its room. A
  // document is compared with all rooms, so they are close together.
  std::vector<std::size_t> open_;
  std::vector<std::int64_t> rooms_;
  std::vector<PackedSequence> slots_;
  std::vector<std::size_t> free_;  // the slots without an open sequence
};

// Writes the numbers by which attention keeps documents apart, for each position of the sequence: the
// document's ordinal in the sequence, from 1 on, and the position in the document, from 0 on; 0 and 0 for
// padding. Both arrays have `length` elements.
void fill_borders(const PackedSequence& sequence, std::int64_t length, std::int32_t* ordinals,
                  std::int32_t* positions);

}  // namespace sluice::data
