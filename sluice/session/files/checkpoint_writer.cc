#include "sluice/session/files/checkpoint_writer.h"

#include <exception>

#include "sluice/base/thread.h"

namespace sluice::sessions {

CheckpointWriter::~CheckpointWriter() {
  if (running_.valid()) running_.wait();
}

base::Status CheckpointWriter::write_now(Snapshot& snapshot, const std::vector<std::string>& folders) {
  settle(snapshot);
  // From here on this thread holds no lock of the device, and the training's threads go first.
  base::lower_thread_priority();
  if (snapshot.pieces) return write_shared_checkpoint(snapshot, folders, *peers_, copy_);
  SLUICE_OK(write_checkpoints(snapshot, folders));
  if (!copy_.begin) return {};
  SLUICE_TRY(const std::string place, copy_.begin());
  return copy_.finish(place, folders);
}

base::Status CheckpointWriter::write(Snapshot snapshot, std::vector<std::string> folders) {
  SLUICE_OK(wait());
  running_ = std::async(
      std::launch::async,
      [this, snapshot = std::move(snapshot), folders = std::move(folders)]() mutable -> base::Status {
        base::name_thread("sluice-save");
        try {
          return write_now(snapshot, folders);
        } catch (const Error& error) {
          return tl::unexpected<Error>(error);
        } catch (const std::exception& error) {
          return base::fail(Code::kUnknown, "cannot write the checkpoint: ", error.what());
        }
      });
  return {};
}

base::Status CheckpointWriter::wait() {
  if (!running_.valid()) return {};
  return running_.get();
}

}  // namespace sluice::sessions
