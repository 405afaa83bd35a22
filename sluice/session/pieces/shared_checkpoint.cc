#include "sluice/session/pieces/shared_checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "sluice/base/clock.h"
#include "sluice/base/files/file.h"
#include "sluice/base/files/safe_join.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/span.h"
#include "sluice/base/text/join.h"
#include "sluice/session/files/fresh_folders.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/finite.h"

namespace sluice::sessions {
namespace shared_checkpoint_detail {

// The keys of the board. Each message has the number of its save, so that one of an earlier save is not taken
// for it.
constexpr const char *kBegun = "checkpoint begun", *kDone = "checkpoint done";
std::string written_key(int process) { return base::str("checkpoint written ", process); }

nlohmann::json message_of(const base::Status& status) {
  if (status) return {{"code", 0}, {"error", ""}};
  return {{"code", static_cast<int>(status.error().code())}, {"error", status.error().what()}};
}

// Returns what a message says of its process.
base::Status status_of(const nlohmann::json& message) {
  const int code = message["code"].get<int>();
  if (code == 0) return {};
  const bool known = code > 0 && code <= static_cast<int>(Code::kDataLoss);
  return base::fail(known ? static_cast<Code>(code) : Code::kUnknown, message["error"].get<std::string>());
}

// One process's part in one save.
class SharedWrite {
 public:
  SharedWrite(const Snapshot& snapshot, const std::vector<std::string>& folders, SavePeers& peers,
              const CheckpointCopy& copy)
      : snapshot_(snapshot), folders_(folders), peers_(peers), copy_(copy), number_(peers.saves++) {}

  base::Status lead() {
    const base::Status begun = begin();
    nlohmann::json message = message_of(begun);
    if (begun) message.update({{"folder", name_}, {"place", place_}, {"save", save_}});
    SLUICE_OK(tell(kBegun, std::move(message)));
    if (!begun) return begun;
    const base::Status written = write_and_gather();
    const base::Status done = written ? complete() : written;
    // If the others are lost, nobody reads this.
    const base::Status told = tell(kDone, message_of(done));
    return done ? told : done;
  }

  base::Status follow() {
    SLUICE_TRY(const nlohmann::json begun, await(kBegun));
    SLUICE_OK(status_of(begun));
    nlohmann::json message = message_of(follow_to(begun));
    message["checksums"] = checksums_;
    SLUICE_OK(tell(written_key(peers_.index), std::move(message)));
    SLUICE_TRY(const nlohmann::json done, await(kDone));
    return status_of(done);
  }

 private:
  base::Status begin() {
    save_ = base::str(static_cast<int64_t>(base::wall_seconds() * 1e3), "-", getpid(), "-", number_);
    const base::Status made = make_folder("-" + save_);
    if (!made) return base::fail_at(made, "cannot write the checkpoint ", folders_.front());
    if (!copy_.begin) return {};
    SLUICE_TRY(place_, copy_.begin());
    return {};
  }

  base::Status make_folder(const std::string& mark) {
    SLUICE_TRY(folder_, fresh_.add(folders_.front(), mark));
    name_ = folder_.substr(folder_.rfind('/') + 1);
    return base::make_directories(folder_);
  }

  // The others write into the leader's folder, or into a folder of their own for the copy.
  base::Status follow_to(const nlohmann::json& begun) {
    for (const char* const text : {"folder", "place", "save"})
      if (!begun.contains(text) || !begun[text].is_string())
        return base::fail(Code::kDataLoss, "the message of process 0 lacks ", text);
    save_ = begun["save"].get<std::string>();
    place_ = begun["place"].get<std::string>();
    if (copy_.begin) {
      SLUICE_OK(make_folder("-" + save_));
    } else {
      SLUICE_TRY(folder_,
                 base::safe_join(base::parent_path(folders_.front()), begun["folder"].get<std::string>()));
      if (!base::is_directory(folder_))
        return base::fail(Code::kNotFound, "the folder ", folder_,
                          ", which process 0 has made, is not here: --logdir must be a folder that all "
                          "processes see, or in a bucket");
    }
    return write_own();
  }

  // Writes this process's files.
  base::Status write_own() {
    SLUICE_OK(check_finite(snapshot_));
    SLUICE_OK(write_kind(kModel, snapshot_.model));
    SLUICE_OK(write_kind(kState, snapshot_.state));
    SLUICE_OK(base::sync_directory(folder_));
    return copy_.send ? copy_.send(place_, folder_) : base::Status();
  }

  base::Status write_kind(const char* kind, const std::vector<std::pair<std::string, Pending>>& values) {
    NamedTensors tensors;
    for (const auto& [name, value] : values) {
      tensors.emplace_back(name, value.get().front().resolve_conj().resolve_neg().contiguous());
      const at::Tensor& tensor = tensors.back().second;
      checksums_[base::str(kind, ' ', name)] = base::crc32c(tensor.const_data_ptr(), tensor.nbytes());
    }
    return write_safetensors(base::join_path(folder_, part_name(kind, peers_.index, peers_.count)), tensors,
                             {{"format", "pt"}, {kSave, save_}});
  }

  // The leader writes its own files, and waits for the others'. All of them have ended before it returns,
  // except lost processes.
  base::Status write_and_gather() {
    base::Status first = named(0, write_own());
    for (int p = 1; p < peers_.count; ++p) {
      const auto message = await(written_key(p));
      if (!message)
        return base::fail_at(message, "cannot write the checkpoint ", folders_.front(), ": it lacks ",
                             part_name(kState, p, peers_.count), " of process ", p);
      const base::Status status = named(p, status_of(*message));
      if (first && !status) first = status;
      if (first) first = named(p, take_checksums(p, *message));
    }
    return first;
  }

  base::Status named(int process, const base::Status& status) const {
    if (status) return {};
    const bool refused = status.error().code() == Code::kOutOfRange;  // its values, and not the disk
    return base::fail_at(status, refused ? "the checkpoint " : "cannot write the checkpoint ",
                         folders_.front(), refused ? " was not written: process " : ": process ", process);
  }

  // Takes the checksums of another process's pieces, and looks for its files.
  base::Status take_checksums(int process, const nlohmann::json& message) {
    for (const char* const kind : {kModel, kState}) {
      const std::string part = base::join_path(folder_, part_name(kind, process, peers_.count));
      if (!copy_.begin && !base::path_exists(part))
        return base::fail(Code::kNotFound, part, " is not here: --logdir must be a folder that all ",
                          "processes see, or in a bucket");
    }
    const auto checksums = message.find("checksums");
    if (checksums == message.end() || !checksums->is_object())
      return base::fail(Code::kDataLoss, "its message has no checksums");
    for (const auto& [name, crc] : checksums->items())
      if (crc.is_number_unsigned()) checksums_[name] = crc.get<uint32_t>();
    return {};
  }

  // Writes the rest, and puts the folders in their places.
  base::Status complete() {
    const base::Status done = complete_folders();
    if (!done) return base::fail_at(done, "cannot write the checkpoint ", folders_.front());
    return copy_.finish ? copy_.finish(place_, folders_) : base::Status();
  }

  base::Status complete_folders() {
    SLUICE_OK(write_index(kModel, snapshot_.pieces->model));
    SLUICE_OK(write_index(kState, snapshot_.pieces->state));
    SLUICE_OK(write_progress(snapshot_, folder_));
    SLUICE_OK(base::sync_directory(folder_));
    for (size_t i = 1; i < folders_.size(); ++i) {
      SLUICE_TRY(const std::string fresh, fresh_.add(folders_[i], "-" + save_));
      SLUICE_OK(link_files(names(), folder_, fresh));
    }
    for (size_t i = 0; i < folders_.size(); ++i) SLUICE_OK(put_in_place(fresh_.paths()[i], folders_[i]));
    return {};
  }

  base::Status write_index(const char* kind, PieceIndex index) const {
    index.save = save_;
    for (auto& [name, tensor] : index.tensors)
      for (Piece& piece : tensor.pieces)
        if (const auto crc = checksums_.find(base::str(kind, ' ', piece.name)); crc != checksums_.end())
          piece.crc32c = crc->second;
    SLUICE_TRY(const std::string text, index_text(index));
    return base::write_file_atomically(base::join_path(folder_, index_name(kind)), text);
  }

  // Returns the names of the files of the local folder. With a copy, the other processes have their own
  // folders.
  std::vector<std::string> names() const {
    std::vector<std::string> all = {index_name(kModel), index_name(kState), "state.json"};
    for (const auto& [name, content] : snapshot_.files) all.push_back(name);
    for (int p = 0; p < (copy_.begin ? 1 : peers_.count); ++p)
      for (const char* const kind : {kModel, kState}) all.push_back(part_name(kind, p, peers_.count));
    return all;
  }

  base::Status tell(const std::string& key, nlohmann::json message) const {
    message["number"] = number_;
    return peers_.put(key, base::with_json_texts(message).dump());
  }

  // Waits for the message of this save.
  base::Result<nlohmann::json> await(const std::string& key) const {
    auto pause = std::chrono::milliseconds(1);
    while (true) {
      SLUICE_TRY(const auto text, peers_.get(key));
      if (text) {
        SLUICE_TRY(nlohmann::json message, parse(key, *text));
        if (message["number"].get<int64_t>() == number_) return message;
      }
      SLUICE_OK(peers_.status());
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(20));
    }
  }

  static base::Result<nlohmann::json> parse(const std::string& key, const std::string& text) {
    nlohmann::json message = base::with_bytes(base::parse_json(text));
    const bool good = message.is_object() && message.contains("number") &&
                      message["number"].is_number_integer() && message.contains("code") &&
                      message["code"].is_number_integer() && message.contains("error") &&
                      message["error"].is_string();
    if (!good) return base::fail(Code::kDataLoss, "the message '", key, "' of another process is malformed");
    return message;
  }

  const Snapshot& snapshot_;
  const std::vector<std::string>& folders_;
  SavePeers& peers_;
  const CheckpointCopy& copy_;
  const int64_t number_;
  FreshFolders fresh_;
  std::string folder_, name_, place_, save_;
  std::map<std::string, uint32_t> checksums_;  // by kind and piece
};

}  // namespace shared_checkpoint_detail

base::Status write_shared_checkpoint(const Snapshot& snapshot, const std::vector<std::string>& folders,
                                     SavePeers& peers, const CheckpointCopy& copy) {
  const base::Span span("write a checkpoint");
  shared_checkpoint_detail::SharedWrite write(snapshot, folders, peers, copy);
  return peers.index == 0 ? write.lead() : write.follow();
}

}  // namespace sluice::sessions
