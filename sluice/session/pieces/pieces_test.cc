// Checkpoints in pieces: the index, the files, and several processes (here: threads) that write one together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/session/files/weights.h"
#include "sluice/session/pieces/piece_files.h"
#include "sluice/session/pieces/shared_checkpoint.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The board of processes that are threads of this one.
struct Board {
  std::mutex mutex;
  std::map<std::string, std::string> texts;
  std::string lost;  // not empty: why a process is lost

  SavePeers peers(int index, int count) {
    SavePeers peers;
    peers.index = index;
    peers.count = count;
    peers.put = [this](const std::string& key, const std::string& text) -> base::Status {
      const std::scoped_lock lock(mutex);
      texts[key] = text;
      return {};
    };
    peers.get = [this](const std::string& key) -> base::Result<std::optional<std::string>> {
      const std::scoped_lock lock(mutex);
      const auto found = texts.find(key);
      return found == texts.end() ? std::nullopt : std::optional(found->second);
    };
    peers.status = [this]() -> base::Status {
      const std::scoped_lock lock(mutex);
      return lost.empty() ? base::Status() : base::fail(Code::kUnavailable, lost);
    };
    return peers;
  }
};

constexpr int kProcesses = 3;

// A tensor whose rows lie over the processes, and the process that writes it if it does not.
struct Given {
  std::string name;
  at::Tensor value;
  int whole_at = -1;
};

// Adds what the processes have of a tensor to the snapshot of `process`.
void give(Snapshot& snapshot, const char* kind, int process, const Given& given) {
  const bool model = std::string(kind) == kModel;
  PiecedTensor& whole = (model ? snapshot.pieces->model : snapshot.pieces->state).tensors[given.name];
  whole.type = given.value.scalar_type();
  whole.sizes = given.value.sizes().vec();
  for (int p = 0; p < kProcesses; ++p) {
    if (given.whole_at >= 0 && p != given.whole_at) continue;
    std::vector<int64_t> start(whole.sizes.size(), 0);
    at::Tensor part = given.value;
    if (given.whole_at < 0) {
      start[0] = p * part.size(0) / kProcesses;
      part = part.narrow(0, start[0], part.size(0) / kProcesses);
    }
    const std::string name = piece_name(given.name, start, part.sizes().vec(), whole.sizes);
    whole.pieces.push_back({name, start, part.sizes().vec(), part_name(kind, p, kProcesses)});
    if (p == process)
      (model ? snapshot.model : snapshot.state).emplace_back(name, Backend("cpu", {}, {}).fetch(part));
  }
}

struct Values {
  at::Tensor weight = at::arange(48, at::kFloat).reshape({6, 8});
  at::Tensor bias = at::arange(5, at::kFloat);
  at::Tensor moment = at::view_as_complex(at::arange(24, at::kDouble).reshape({3, 4, 2}));
};

Snapshot snapshot_of(int process, int64_t step, const Values& values = {}) {
  Snapshot snapshot;
  snapshot.pieces.emplace();
  snapshot.progress.step = step;
  snapshot.progress.model = "net";
  give(snapshot, kModel, process, {"weight", values.weight});
  give(snapshot, kModel, process, {"bias", values.bias, 1});
  give(snapshot, kState, process, {"moment", values.moment});
  give(snapshot, kState, process, {"step", at::scalar_tensor(7, at::kLong), 0});
  return snapshot;
}

using Folders = std::vector<std::string>;
// All processes write together; returns what each of them returned.
std::vector<base::Status> write_together(Board& board, const Folders& folders, int64_t step,
                                         const std::function<void(int, Snapshot&)>& change = {},
                                         const std::function<Folders(int)>& folders_of = {}) {
  std::vector<base::Status> results(kProcesses);
  std::vector<std::thread> threads;
  for (int p = 0; p < kProcesses; ++p)
    threads.emplace_back([&, p] {
      Snapshot snapshot = snapshot_of(p, step);
      if (change) change(p, snapshot);
      SavePeers peers = board.peers(p, kProcesses);
      peers.saves = step;
      results[static_cast<size_t>(p)] =
          write_shared_checkpoint(snapshot, folders_of ? folders_of(p) : folders, peers);
    });
  for (std::thread& thread : threads) thread.join();
  return results;
}

base::TemporaryDirectory temporary_folder() {
  return base::value_or_throw(base::TemporaryDirectory::create());
}

at::Tensor named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [other, tensor] : tensors)
    if (other == name) return tensor;
  return {};
}

void expect_step(const std::string& folder, int64_t step) {
  const auto checkpoint = read_checkpoint(folder);
  ASSERT_TRUE(checkpoint) << checkpoint.error().what();
  EXPECT_EQ(checkpoint->progress.step, step);
  EXPECT_TRUE(at::equal(named(checkpoint->model, "weight"), Values().weight));
  EXPECT_TRUE(at::equal(named(checkpoint->model, "bias"), Values().bias));
  EXPECT_TRUE(at::equal(named(checkpoint->state, "moment"), Values().moment));
  EXPECT_EQ(named(checkpoint->state, "step").item<int64_t>(), 7);
}

TEST(Pieces, SeveralProcessesWriteOneCheckpoint) {
  const auto folder = temporary_folder();
  Board board;
  for (const int64_t step : {1, 2})
    for (const auto& result : write_together(board, {folder.path("best"), folder.path("last")}, step))
      ASSERT_TRUE(result) << result.error().what();
  expect_step(folder.path("last"), 2);
  expect_step(folder.path("best"), 2);
  // The folders share their files, and nothing else is left.
  EXPECT_EQ(std::filesystem::hard_link_count(folder.path("last/model-00002-of-00003.safetensors")), 2U);
  EXPECT_THAT(base::value_or_throw(base::list_directory(folder.path())),
              testing::ElementsAre("best", "last"));
  // Any reader of the format can open a file.
  const auto part =
      base::value_or_throw(read_safetensors(folder.path("last/model-00002-of-00003.safetensors")));
  ASSERT_EQ(part.size(), 2U);
  EXPECT_TRUE(at::equal(named(part, "weight@2,0"), Values().weight.slice(0, 2, 4)));
  EXPECT_TRUE(at::equal(named(part, "bias"), Values().bias));
  // What reads weights alone knows the form.
  EXPECT_TRUE(
      at::equal(named(base::value_or_throw(read_weights(folder.path("last"))), "weight"), Values().weight));
  EXPECT_TRUE(check_whole(folder.path("last"), "last"));
}

TEST(Pieces, TheOldCheckpointStaysIfOneProcessCannotWrite) {
  const auto folder = temporary_folder();
  Board board;
  for (const auto& result : write_together(board, {folder.path("last")}, 1)) ASSERT_TRUE(result);
  // The file cannot hold this type: process 2 fails, and all say so.
  const auto unwritable = [](int process, Snapshot& snapshot) {
    if (process == 2)
      snapshot.model.emplace_back("odd", Backend("cpu", {}, {}).fetch(at::empty({2}, at::kBits8)));
  };
  for (const auto& result : write_together(board, {folder.path("last")}, 2, unwritable)) {
    ASSERT_FALSE(result);
    EXPECT_THAT(std::string(result.error().what()),
                AllOf(HasSubstr("cannot write the checkpoint " + folder.path("last") + ": process 2: "),
                      HasSubstr("odd"), HasSubstr("model-00003-of-00003.safetensors")));
  }
  expect_step(folder.path("last"), 1);
  EXPECT_THAT(base::value_or_throw(base::list_directory(folder.path())), testing::ElementsAre("last"));
}

TEST(Pieces, ValuesThatAreNotFiniteKeepTheOldCheckpoint) {
  const auto folder = temporary_folder();
  Board board;
  for (const auto& result : write_together(board, {folder.path("last")}, 1)) ASSERT_TRUE(result);
  const auto infinite = [](int process, Snapshot& snapshot) {
    Values values;
    values.weight[3][1] = std::numeric_limits<float>::quiet_NaN();
    snapshot = snapshot_of(process, 2, values);
  };
  for (const auto& result : write_together(board, {folder.path("last")}, 2, infinite)) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Code::kOutOfRange);
    EXPECT_THAT(
        std::string(result.error().what()),
        AllOf(HasSubstr("was not written: process 1: after step 2 weight@2,0 cannot be trained with")));
  }
  expect_step(folder.path("last"), 1);
}

TEST(Pieces, ALostProcessKeepsTheOldCheckpoint) {
  const auto folder = temporary_folder();
  Board board;
  for (const auto& result : write_together(board, {folder.path("last")}, 1)) ASSERT_TRUE(result);
  std::thread pulse([&board] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const std::scoped_lock lock(board.mutex);
    board.lost = "lost process 1 of 3 (it was killed)";
  });
  SavePeers leader = board.peers(0, kProcesses);
  leader.saves = 2;
  const auto result = write_shared_checkpoint(snapshot_of(0, 2), {folder.path("last")}, leader);
  pulse.join();
  ASSERT_FALSE(result);
  EXPECT_THAT(std::string(result.error().what()),
              AllOf(HasSubstr("it lacks state-00002-of-00003.safetensors of process 1"),
                    HasSubstr("lost process 1 of 3")));
  expect_step(folder.path("last"), 1);
  EXPECT_THAT(base::value_or_throw(base::list_directory(folder.path())), testing::ElementsAre("last"));
}

TEST(Pieces, AFolderThatNotAllProcessesSeeIsAnError) {
  const auto folder = temporary_folder(), other = temporary_folder();
  Board board;
  const auto apart = [&](int process) {
    return Folders{process == 1 ? other.path("last") : folder.path("last")};
  };
  for (const auto& result : write_together(board, {}, 1, {}, apart)) {
    ASSERT_FALSE(result);
    EXPECT_THAT(std::string(result.error().what()), AllOf(HasSubstr("process 1: the folder " + other.path()),
                                                          HasSubstr("that all processes see")));
  }
  EXPECT_EQ(find_checkpoint(folder.path("last")), "");
}

TEST(Pieces, TheCopyGetsTheFilesOfAllProcesses) {
  const auto machines = temporary_folder(), bucket = temporary_folder();
  Board board;
  std::vector<std::thread> threads;
  std::vector<base::Status> results(kProcesses);
  std::vector<std::string> finished;
  const auto send = [&](const std::string& place, const std::string& from) -> base::Status {
    base::value_or_throw(base::make_directories(bucket.path(place)));
    using Options = std::filesystem::copy_options;
    std::filesystem::copy(from, bucket.path(place), Options::recursive | Options::skip_existing);
    return {};
  };
  for (int p = 0; p < kProcesses; ++p)
    threads.emplace_back([&, p] {
      SavePeers peers = board.peers(p, kProcesses);
      const CheckpointCopy copy{[] { return std::string("copy-1"); }, send,
                                [&](const std::string& place, const Folders& folders) {
                                  finished = folders;
                                  return send(place, folders.front());
                                }};
      // Each process has a folder of its own machine.
      const std::string own = machines.path(base::str(p, "/last"));
      results[static_cast<size_t>(p)] = write_shared_checkpoint(snapshot_of(p, 3), {own}, peers, copy);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) ASSERT_TRUE(result) << result.error().what();
  EXPECT_THAT(finished, testing::ElementsAre(machines.path("0/last")));
  expect_step(bucket.path("copy-1"), 3);
  EXPECT_THAT(base::value_or_throw(base::list_directory(machines.path("1"))), testing::IsEmpty());
}

at::Tensor read_box(StoredReader& reader, const StoredTensors& tensors, const std::string& name,
                    const std::vector<int64_t>& start, const std::vector<int64_t>& sizes) {
  const StoredTensor& tensor = tensors.at(name);
  return base::value_or_throw(reader.read(StoredBox{name, &tensor, start, sizes, tensor.type}));
}

TEST(Pieces, BlocksOfAnyOtherMeshAreReadByRanges) {
  const auto folder = temporary_folder();
  Board board;
  for (const auto& result : write_together(board, {folder.path("last")}, 1)) ASSERT_TRUE(result);
  const Values values;
  StoredReader reader;
  const auto model = base::value_or_throw(reader.list(folder.path("last")));
  ASSERT_EQ(model.size(), 2U);
  EXPECT_EQ(model.at("weight").sizes, (std::vector<int64_t>{6, 8}));
  EXPECT_EQ(model.at("weight").pieces.size(), 3U);
  // Rows of three pieces, and nothing else.
  EXPECT_TRUE(at::equal(read_box(reader, model, "weight", {1, 0}, {4, 8}), values.weight.slice(0, 1, 5)));
  EXPECT_EQ(reader.reads().needed, 4 * 8 * 4);
  EXPECT_EQ(reader.reads().bytes, reader.reads().needed);
  // Columns of all pieces: neighbours are read together only while that costs at most a quarter.
  EXPECT_TRUE(at::equal(read_box(reader, model, "weight", {0, 2}, {6, 3}), values.weight.narrow(1, 2, 3)));
  EXPECT_LE(reader.reads().bytes * 100, reader.reads().needed * 125);
  const auto state = base::value_or_throw(reader.list(folder.path("last/state.safetensors.index.json")));
  EXPECT_TRUE(at::equal(read_box(reader, state, "moment", {0, 1}, {3, 2}), values.moment.narrow(1, 1, 2)));
  EXPECT_EQ(read_box(reader, state, "step", {}, {}).item<int64_t>(), 7);
}

// A checkpoint to damage.
class DamagedPieces : public testing::Test {
 protected:
  void SetUp() override {
    Board board;
    for (const auto& result : write_together(board, {last_}, 1)) ASSERT_TRUE(result);
  }
  std::string path(const std::string& name) const { return base::join_path(last_, name); }
  std::string error() const {
    const auto read = read_checkpoint(last_);
    return read ? std::string() : std::string(read.error().what());
  }

  const base::TemporaryDirectory folder_ = temporary_folder();
  const std::string last_ = folder_.path("last");
  const std::string part_ = "model-00003-of-00003.safetensors";
};

TEST_F(DamagedPieces, AChangedByteNamesFileTensorAndPlace) {
  std::string bytes = base::value_or_throw(base::read_file(path(part_)));
  bytes[bytes.size() - 1] = static_cast<char>(bytes.back() ^ 4);
  base::value_or_throw(base::write_file_atomically(path(part_), bytes));
  EXPECT_THAT(error(), AllOf(HasSubstr(path(part_)), HasSubstr("the tensor weight from [4, 0] on"),
                             HasSubstr("checksum")));
}

TEST_F(DamagedPieces, ABlockWithAWholePieceIsComparedWithItsChecksum) {
  std::string bytes = base::value_or_throw(base::read_file(path(part_)));
  bytes[bytes.size() - 1] = static_cast<char>(bytes.back() ^ 4);
  base::value_or_throw(base::write_file_atomically(path(part_), bytes));
  StoredReader reader;
  const auto model = base::value_or_throw(reader.list(last_));
  const StoredTensor& weight = model.at("weight");
  const auto read = reader.read(StoredBox{"weight", &weight, {3, 0}, {3, 8}, at::kFloat});
  ASSERT_FALSE(read);
  EXPECT_THAT(std::string(read.error().what()), AllOf(HasSubstr("tensor weight: " + path(part_)),
                                                      HasSubstr("at byte "), HasSubstr("checksum")));
}

TEST_F(DamagedPieces, ACutFileIsNamed) {
  std::filesystem::resize_file(path(part_), std::filesystem::file_size(path(part_)) - 3);
  EXPECT_THAT(error(), AllOf(HasSubstr(path(part_)), HasSubstr("cut off?")));
}

TEST_F(DamagedPieces, AMissingFileIsNamed) {
  ASSERT_TRUE(base::remove_file(path(part_)));
  EXPECT_THAT(error(), HasSubstr(part_ + " is missing beside"));
  EXPECT_THAT(std::string(check_whole(last_, "run/last").error().what()),
              HasSubstr("run/last is not a whole"));
  ASSERT_TRUE(base::remove_file(path("state.safetensors.index.json")));
  EXPECT_THAT(error(), HasSubstr(part_ + " and state.safetensors.index.json are missing"));
}

TEST_F(DamagedPieces, AFileOfAnotherSaveIsRefused) {
  const auto other = temporary_folder();
  Board board;
  for (const auto& result : write_together(board, {other.path("last")}, 2)) ASSERT_TRUE(result);
  std::filesystem::copy_file(other.path("last/" + part_), path(part_),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(error(), AllOf(HasSubstr(path(part_)), HasSubstr("is of another save")));
  StoredReader reader;
  EXPECT_THAT(std::string(reader.list(last_).error().what()),
              AllOf(HasSubstr(path(part_)), HasSubstr("is of another save")));
}

TEST_F(DamagedPieces, AFileWithAnotherShapeIsRefused) {
  const auto index = base::value_or_throw(read_index(path("model.safetensors.index.json")));
  const std::map<std::string, std::string> metadata = {{kSave, index.save}};
  ASSERT_TRUE(write_safetensors(path(part_), {{"weight@4,0", at::zeros({8, 2})}}, metadata));
  EXPECT_THAT(error(), AllOf(HasSubstr("the tensor weight from [4, 0] on is Float of [8, 2]"),
                             HasSubstr("the index says Float of [2, 8]")));
  ASSERT_TRUE(write_safetensors(path(part_), {{"other", at::zeros({2, 8})}}, metadata));
  EXPECT_THAT(error(), HasSubstr("the index does not know the tensor other in this file"));
}

TEST_F(DamagedPieces, AnIndexIsCheckedBeforeItIsUsed) {
  const std::string file = path("model.safetensors.index.json");
  const auto whole = nlohmann::json::parse(base::value_or_throw(base::read_file(file)));
  const auto wrong = [&](const std::string& place, const nlohmann::json& value) {
    nlohmann::json changed = whole;
    changed[nlohmann::json::json_pointer(place)] = value;
    base::value_or_throw(base::write_file_atomically(file, changed.dump()));
    const std::string message = error();
    EXPECT_THAT(message, HasSubstr(file)) << place;
    return message;
  };
  const std::string weight = "/tensors/weight", piece = weight + "/pieces/weight@2,0";
  EXPECT_THAT(wrong("/weight_map/weight@2,0", "../other.safetensors"),
              HasSubstr("in a file of the same folder"));
  EXPECT_THAT(wrong("/weight_map/weight@2,0", 3), HasSubstr("has no file in weight_map"));
  EXPECT_THAT(wrong("/weight_map/more", "model-00001-of-00003.safetensors"), HasSubstr("weight_map names 5"));
  EXPECT_THAT(wrong(piece + "/start", {3, 0}), HasSubstr("overlap, or leave a hole"));
  EXPECT_THAT(wrong(piece + "/start", {0, 0}), HasSubstr("overlap, or leave a hole"));
  EXPECT_THAT(wrong(piece + "/start", {-2, 0}), HasSubstr("not a list of sizes"));
  EXPECT_THAT(wrong(piece + "/shape", {2, 9}), HasSubstr("is not within it"));
  EXPECT_THAT(wrong(piece + "/shape", {2, 7}), HasSubstr("ends at 7 in dimension 1"));
  EXPECT_THAT(wrong(piece + "/shape", {2}), HasSubstr("is not within it"));
  EXPECT_THAT(wrong(piece + "/crc32c", -1), HasSubstr("a number of 32 bits"));
  EXPECT_THAT(wrong(weight + "/dtype", "F128"), HasSubstr("F128 is not known"));
  EXPECT_THAT(wrong(weight + "/shape", {6, 9}), HasSubstr("ends at 8 in dimension 1"));
  EXPECT_THAT(wrong(weight + "/pieces", nlohmann::json::object()), HasSubstr("no piece begins at 0"));
  EXPECT_THAT(wrong("/tensors/bias/pieces", whole["tensors"]["weight"]["pieces"]),
              HasSubstr("the tensor bias"));
  EXPECT_THAT(wrong("/metadata", 1), HasSubstr("expected a JSON object"));
  // A tensor that cannot be: no memory is taken for it.
  nlohmann::json huge = whole["tensors"]["bias"];
  huge["shape"] = huge["pieces"]["bias"]["shape"] = nlohmann::json::array({uint64_t{1} << 40});
  EXPECT_THAT(wrong("/tensors/bias", huge), HasSubstr("more bytes than the files"));
  // Two entries of one name.
  base::value_or_throw(base::write_file_atomically(file, R"({"weight_map": {"a": "x", "a": "y"}})"));
  EXPECT_THAT(error(), HasSubstr(file));
}

TEST(PieceIndex, NamesOfFiles) {
  EXPECT_EQ(part_name(kModel, 1, 4), "model-00002-of-00004.safetensors");
  EXPECT_EQ(part_name(kState, 123456, 200000), "state-123457-of-200000.safetensors");
  EXPECT_EQ(piece_name("a.b", {4, 0}, {2, 8}, {6, 8}), "a.b@4,0");
  EXPECT_EQ(piece_name("a.b", {0, 0}, {6, 8}, {6, 8}), "a.b");
  EXPECT_FALSE(
      has_parts({"model.safetensors", "model-1-of-2.safetensors", "model-00003-of-00002.safetensors"}));
  EXPECT_TRUE(has_parts({"state-00001-of-00002.safetensors"}));
  EXPECT_THAT(
      missing_parts({"model-00001-of-00002.safetensors", "model.safetensors.index.json", "state.json"}),
      testing::ElementsAre("model-00002-of-00002.safetensors", "state.safetensors.index.json",
                           "state-00001-of-00002.safetensors", "state-00002-of-00002.safetensors"));
}

TEST(PieceIndex, TwoPiecesOfOneNameAreRefused) {
  PieceIndex index;
  index.tensors["a"] = {at::kFloat, {2, 1}, {{"a@0,0", {0, 0}, {1, 1}, "f"}, {"a@1,0", {1, 0}, {1, 1}, "f"}}};
  index.tensors["a@1,0"] = {at::kFloat, {1}, {{"a@1,0", {0}, {1}, "f"}}};
  EXPECT_THAT(std::string(index_text(index).error().what()),
              HasSubstr("two pieces of tensors are called a@1,0"));
}

}  // namespace
}  // namespace sluice::sessions
