#include "sluice/device/operators/factor_statuses.h"

#include <ATen/ops/_linalg_check_errors.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <list>
#include <vector>

#include "sluice/base/error.h"
#include "sluice/base/result.h"
#include "sluice/base/text/join.h"
#include "sluice/device/capture/watch.h"
#include "sluice/device/libtorch/torch_error.h"
#include "sluice/device/program/trace.h"
#include "sluice/device/runtime.h"
#include "sluice/device/storage.h"
#include "sluice/device/transfer.h"

namespace sluice::device {
namespace {

struct Status {
  at::Tensor info;  // on the device, until it is copied
  std::string operation;
  bool matrix = false;
  DataPtr data;
  std::vector<at::Tensor> hosts;  // [replica]
  std::vector<pjrt::Event> copied;
};

// A list, because a program in a loop has thousands, which leave it one by one.
std::list<Status>& statuses() {
  static auto* all = new std::list<Status>();
  return *all;
}

void start_copies(Status& status) {
  status.data = LazyStorage::of(status.info)->data;
  status.info.reset();
  for (const pjrt::Buffer& buffer : status.data->buffers) {
    at::Tensor host = at::empty(status.data->type->type.dims, at::kInt);
    status.copied.push_back(
        base::value_or_throw(buffer.to_host(host.mutable_data_ptr(), status.data->type->type.bytes())));
    status.copied.back().on_ready([host](const base::Status&) {});  // the host tensor lives until it is
                                                                    // written
    status.hosts.push_back(std::move(host));
  }
}

void check(const Status& status) {
  for (size_t r = 0; r < status.hosts.size(); ++r) {
    if (auto copied = status.copied[r].await(); !copied) throw_error(copied.error());
    try {
      at::_linalg_check_errors(status.hosts[r], status.operation, status.matrix);
    } catch (const c10::Error& error) {
      throw TorchError(WrongValue(base::str(error.what_without_backtrace(), " (program ", status.data->launch,
                                            " found it; SLUICE_CHECK=0 does not look)")));
    }
  }
}

// Returns whether the status is read at the call. Programs catch the error of a matrix that is not positive
// definite and try again with another one, so a Cholesky factorization is checked at once.
bool is_looked_at_now(std::string_view operation) {
  const Runtime& rt = runtime();
  return rt.options.eager || Watch::current() != nullptr || operation.find("cholesky") != operation.npos;
}

void check_errors(const at::Tensor& info, std::string_view operation, bool matrix) {
  const TraceLock lock = lock_trace();
  const Runtime& rt = runtime();
  if (rt.ahead || !rt.options.check) return;
  if (!is_looked_at_now(operation)) return note_status(info, operation, matrix);
  const at::Tensor host = download(info, operation);
  at::_linalg_check_errors(host, operation, matrix);
}

}  // namespace

void note_status(const at::Tensor& info, std::string_view operation, bool matrix) {
  Status status{info.detach(), std::string(operation), matrix, {}, {}, {}};
  const LazyStorage& storage = *LazyStorage::of(info);
  if (storage.state == LazyStorage::State::kData) start_copies(status);
  statuses().push_back(std::move(status));
}

void copy_statuses() {
  for (Status& status : statuses())
    if (status.info.defined() && LazyStorage::of(status.info)->state == LazyStorage::State::kData)
      start_copies(status);
}

void check_statuses(int64_t launch) {
  std::list<Status>& all = statuses();
  for (auto next = all.begin(); next != all.end();) {
    if (next->data == nullptr || next->data->launch > launch) {
      ++next;
      continue;
    }
    const Status status = std::move(*next);
    next = all.erase(next);
    check(status);
  }
}

void forget_pending_statuses() {
  std::erase_if(statuses(), [](const Status& status) { return status.info.defined(); });
}

void forget_statuses() { statuses().clear(); }

void register_factor_statuses() {
  static auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::XLA, __FILE__, __LINE__);
  library->impl("_linalg_check_errors", TORCH_FN(check_errors));
}

}  // namespace sluice::device
