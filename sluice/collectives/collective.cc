#include "sluice/collectives/collective.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iomanip>
#include <set>

namespace sluice::collectives {
namespace {

// The bytes that a thread takes at a time: so few that the parts of a few replicas stay in a core's cache.
constexpr size_t kTaskBytes = 64 << 10;
// The bytes that are exchanged at a time, for each replica, if groups of replicas span processes.
constexpr size_t kPieceBytes = 4 << 20;

std::string program_text(int64_t program) {
  std::ostringstream out;
  out << std::hex << std::setw(16) << std::setfill('0') << static_cast<uint64_t>(program);
  return out.str();
}

std::string place_text(int64_t kind, int64_t site, int64_t program, int64_t operands, int64_t bytes) {
  const bool reduces = kind == static_cast<int64_t>(Contribution::Kind::kAllReduce);
  return base::str(reduces ? "sluice_all_reduce" : "sluice_all_gather", " at site ", site, " of program ",
                   program_text(program), " (", operands, " operands, ", bytes, " bytes)");
}

// The facts that the processes compare before they work together.
struct Header {
  int64_t kind, reduction, program, site, operands, bytes, replicas, sequence;
  bool operator==(const Header&) const = default;
};

std::string header_text(size_t process, const Header& h, const Header& other) {
  std::string text =
      base::str("process ", process, " is at ", place_text(h.kind, h.site, h.program, h.operands, h.bytes));
  if (h.sequence != other.sequence) text += base::str(", its collective number ", h.sequence);
  if (h.replicas != other.replicas) text += base::str(", with ", h.replicas, " replicas");
  return text;
}

char* at(const pjrt::CallBuffer& buffer, size_t element) {
  return static_cast<char*>(buffer.data) + element * stablehlo::dtype_size(buffer.dtype);
}

bool same_dims(std::span<const int64_t> a, std::span<const int64_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string type_text(const pjrt::CallBuffer& b) {
  return stablehlo::Type{b.dtype, {b.dims.begin(), b.dims.end()}}.str();
}

}  // namespace

base::Result<Contribution> Contribution::read(const pjrt::CustomCall& call, Kind kind) {
  Contribution made;
  made.kind = kind;
  SLUICE_TRY(const auto program, call.number("program"));
  SLUICE_TRY(const auto site, call.number("site"));
  if (!program || !site) {
    return base::fail(Code::kInvalidArgument,
                      "a collective's custom call needs the i64 attributes program and site");
  }
  made.program = *program;
  made.site = *site;
  if (kind == Kind::kAllReduce) {
    SLUICE_TRY(const auto op, call.text("op"));
    const auto reduction = reduction_named(op.value_or(""));
    if (!reduction) {
      return base::fail(Code::kInvalidArgument,
                        "sluice_all_reduce: the attribute op must be \"sum\", "
                        "\"max\" or \"min\", found \"",
                        op.value_or(""), "\"");
    }
    made.reduction = *reduction;
    SLUICE_TRY(const auto groups, call.numbers("groups"));
    SLUICE_TRY(const auto size, call.number("group_size"));
    if (groups) made.groups.assign(groups->begin(), groups->end());
    made.group_size = size.value_or(0);
  }
  SLUICE_TRY(const auto turn, call.number("turn"));
  const size_t turns = turn ? 1 : 0;
  if (call.num_operands() <= turns || call.num_operands() != call.num_results()) {
    return base::fail(
        Code::kInvalidArgument,
        "a collective's custom call must have the same number of results and operands, at least "
        "one",
        turn ? " besides its turn" : "", "; found ", call.num_operands(), " operands and ",
        call.num_results(), " results");
  }
  if (turn) {
    SLUICE_TRY(const pjrt::CallBuffer follower, call.result(call.num_results() - 1));
    std::memset(follower.data, 0, follower.bytes());
  }
  for (size_t i = 0; i < call.num_operands() - turns; ++i) {
    SLUICE_TRY(const pjrt::CallBuffer operand, call.operand(i));
    SLUICE_TRY(const pjrt::CallBuffer result, call.result(i));
    made.operands.push_back(operand);
    made.results.push_back(result);
  }
  return made;
}

size_t Contribution::bytes() const {
  size_t total = 0;
  for (const pjrt::CallBuffer& operand : operands) total += operand.bytes();
  return total;
}

std::string Contribution::place() const {
  return place_text(static_cast<int64_t>(kind), site, program, static_cast<int64_t>(operands.size()),
                    static_cast<int64_t>(bytes()));
}

Collective::Collective(std::vector<const Contribution*> replicas, CollectiveWorld world, int64_t sequence)
    : replicas_(std::move(replicas)),
      world_(std::move(world)),
      sequence_(sequence),
      together_(static_cast<std::ptrdiff_t>(replicas_.size())) {
  plan(combine_, first().operands);
  if (world_.processes > 1 && replicas_.size() > 1) plan(copy_, first().results);
}

void Collective::plan(Phase& phase, const std::vector<pjrt::CallBuffer>& buffers) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const size_t elements = buffers[i].elements();
    const size_t step = kTaskBytes / stablehlo::dtype_size(buffers[i].dtype);
    for (size_t begin = 0; begin < elements; begin += step) {
      phase.tasks.push_back({i, begin, std::min(begin + step, elements)});
    }
  }
}

size_t Collective::global_replica(size_t local) const {
  return static_cast<size_t>(world_.process_index) * replicas_.size() + local;
}

base::Status Collective::check() const {
  for (size_t r = 0; r < replicas_.size(); ++r) {
    const Contribution& a = first();
    const Contribution& b = *replicas_[r];
    if (a.kind != b.kind || a.program != b.program || a.site != b.site || a.reduction != b.reduction ||
        a.groups != b.groups || a.group_size != b.group_size || a.operands.size() != b.operands.size()) {
      return base::fail(Code::kFailedPrecondition,
                        "the replicas of this process run different programs: replica ", global_replica(0),
                        " is at ", a.place(), ", replica ", global_replica(r), " at ", b.place());
    }
    SLUICE_OK(check_shapes(r));
  }
  return check_groups();
}

base::Status Collective::check_shapes(size_t replica) const {
  const Contribution& mine = *replicas_[replica];
  for (size_t i = 0; i < mine.operands.size(); ++i) {
    const pjrt::CallBuffer &operand = mine.operands[i], &result = mine.results[i];
    std::vector<int64_t> expected(operand.dims.begin(), operand.dims.end());
    if (mine.kind == Contribution::Kind::kAllGather) {
      expected.insert(expected.begin(), static_cast<int64_t>(replicas_.size()) * world_.processes);
    }
    if (result.dtype != operand.dtype || !same_dims(result.dims, expected)) {
      return base::fail(Code::kInvalidArgument, mine.place(), ": result ", i, " must be ",
                        stablehlo::Type{operand.dtype, expected}.str(), ", found ", type_text(result));
    }
    const pjrt::CallBuffer& other = first().operands[i];
    if (other.dtype != operand.dtype || !same_dims(other.dims, operand.dims)) {
      return base::fail(Code::kInvalidArgument, mine.place(), ": operand ", i, " is ", type_text(other),
                        " on replica ", global_replica(0), " and ", type_text(operand), " on replica ",
                        global_replica(replica));
    }
  }
  return {};
}

base::Status Collective::check_groups() const {
  const Contribution& c = first();
  if (c.group_size == 0 && c.groups.empty()) return {};
  const auto all = static_cast<int64_t>(replicas_.size()) * world_.processes;
  const std::set<int64_t> different(c.groups.begin(), c.groups.end());
  const bool complete = static_cast<int64_t>(c.groups.size()) == all &&
                        static_cast<int64_t>(different.size()) == all && *different.begin() == 0 &&
                        *different.rbegin() == all - 1;
  if (complete && c.group_size > 0 && all % c.group_size == 0) return {};
  return base::fail(Code::kInvalidArgument, c.place(),
                    ": groups must be rows of group_size replicas with "
                    "each of the ",
                    all, " replicas once, found [", base::join(c.groups, ", "), "] in rows of ",
                    c.group_size);
}

std::vector<size_t> Collective::members(size_t local) const {
  std::vector<size_t> found;
  const std::vector<int64_t>& groups = first().groups;
  if (groups.empty()) {
    for (size_t r = 0; r < replicas_.size(); ++r) found.push_back(r);
    return found;
  }
  const auto place = std::find(groups.begin(), groups.end(), static_cast<int64_t>(global_replica(local)));
  const auto row = (place - groups.begin()) / first().group_size * first().group_size;
  for (int64_t i = 0; i < first().group_size; ++i) {
    found.push_back(static_cast<size_t>(groups[static_cast<size_t>(row + i)]) - global_replica(0));
  }
  return found;
}

bool Collective::groups_span_processes() const {
  const std::vector<int64_t>& groups = first().groups;
  const auto process = [&](size_t i) { return groups[i] / static_cast<int64_t>(replicas_.size()); };
  for (size_t i = 0; i < groups.size(); ++i) {
    const size_t row = i - i % static_cast<size_t>(first().group_size);
    if (process(i) != process(row)) return true;
  }
  return false;
}

void Collective::work(Phase& phase, Body body) noexcept {
  try {
    for (size_t i = phase.next++; i < phase.tasks.size(); i = phase.next++) (this->*body)(phase.tasks[i]);
  } catch (...) {
    broken_ = true;
  }
}

base::Status Collective::run(size_t replica) {
  const bool reduces = first().kind == Contribution::Kind::kAllReduce;
  const bool in_groups = !first().groups.empty();
  const bool across = world_.processes > 1 && (!in_groups || groups_span_processes());
  if (world_.processes > 1 && replica == 0) status_ = compare_headers();
  if (!across) {
    work(combine_, reduces ? &Collective::sum_locally : &Collective::gather_locally);
  } else {
    if (!in_groups) work(combine_, reduces ? &Collective::sum_to_first : &Collective::gather_to_first);
    together_.arrive_and_wait();
    if (replica == 0 && status_) status_ = talk();
    together_.arrive_and_wait();
    if (!in_groups && status_) work(copy_, &Collective::copy_from_first);
  }
  together_.arrive_and_wait();
  if (broken_) return base::fail(Code::kResourceExhausted, first().place(), ": out of memory");
  return status_;
}

void Collective::sum_locally(const Task& task) const {
  const pjrt::CallBuffer& like = first().operands[task.buffer];
  for (size_t r = 0; r < replicas_.size(); ++r) {
    const std::vector<size_t> group = members(r);
    // The group was done with its first member.
    if (*std::min_element(group.begin(), group.end()) != r) continue;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t member : group) {
      inputs.push_back(at(replicas_[member]->operands[task.buffer], task.begin));
      outputs.push_back(at(replicas_[member]->results[task.buffer], task.begin));
    }
    reduce(like.dtype, first().reduction, inputs, outputs, task.end - task.begin);
  }
}

void Collective::sum_to_first(const Task& task) const {
  std::vector<const void*> inputs;
  for (const Contribution* replica : replicas_) {
    inputs.push_back(at(replica->operands[task.buffer], task.begin));
  }
  void* output = at(first().results[task.buffer], task.begin);
  reduce(first().operands[task.buffer].dtype, first().reduction, inputs, {&output, 1}, task.end - task.begin);
}

void Collective::gather_to(const Task& task, size_t results) const {
  const pjrt::CallBuffer& like = first().operands[task.buffer];
  const size_t bytes = (task.end - task.begin) * stablehlo::dtype_size(like.dtype);
  for (size_t from = 0; from < replicas_.size(); ++from) {
    const size_t place = global_replica(from) * like.elements() + task.begin;
    for (size_t to = 0; to < results; ++to) {
      std::memcpy(at(replicas_[to]->results[task.buffer], place),
                  at(replicas_[from]->operands[task.buffer], task.begin), bytes);
    }
  }
}

void Collective::gather_locally(const Task& task) const { gather_to(task, replicas_.size()); }

void Collective::gather_to_first(const Task& task) const { gather_to(task, 1); }

void Collective::copy_from_first(const Task& task) const {
  const pjrt::CallBuffer& source = first().results[task.buffer];
  const size_t bytes = (task.end - task.begin) * stablehlo::dtype_size(source.dtype);
  for (size_t r = 1; r < replicas_.size(); ++r) {
    std::memcpy(at(replicas_[r]->results[task.buffer], task.begin), at(source, task.begin), bytes);
  }
}

base::Status Collective::compare_headers() const noexcept try {
  const Contribution& c = first();
  const Header mine{static_cast<int64_t>(c.kind),
                    static_cast<int64_t>(c.reduction),
                    c.program,
                    c.site,
                    static_cast<int64_t>(c.operands.size()),
                    static_cast<int64_t>(c.bytes()),
                    static_cast<int64_t>(replicas_.size()),
                    sequence_};
  const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof mine);
  SLUICE_TRY(const auto all, world_.transport->exchange(bytes));
  std::vector<Header> headers(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].size() != sizeof mine)
      return base::fail(Code::kDataLoss, "process ", i, " is at a collective that it describes in ",
                        all[i].size(), " bytes: expected ", sizeof mine);
    std::memcpy(&headers[i], all[i].data(), sizeof mine);
  }
  const auto other = std::find_if(headers.begin(), headers.end(), [&](auto& h) { return h != headers[0]; });
  if (other == headers.end()) return {};
  return base::fail(Code::kFailedPrecondition,
                    "the processes run different programs: ", header_text(0, headers[0], *other), ", ",
                    header_text(static_cast<size_t>(other - headers.begin()), *other, headers[0]),
                    "; what one process alone reads, logs or saves changes its program: do the same in all");
} catch (const std::exception& error) {
  return base::fail(Code::kInternal, error.what());
}

base::Status Collective::talk() const noexcept try {
  if (first().kind == Contribution::Kind::kAllGather) return gather_across_processes();
  return first().groups.empty() ? reduce_across_processes() : reduce_in_groups();
} catch (const std::exception& error) {
  return base::fail(Code::kInternal, error.what());
}

base::Status Collective::reduce_across_processes() const {
  std::vector<stablehlo::DType> dtypes;
  for (const pjrt::CallBuffer& result : first().results) {
    if (std::find(dtypes.begin(), dtypes.end(), result.dtype) == dtypes.end()) dtypes.push_back(result.dtype);
  }
  for (stablehlo::DType dtype : dtypes) {
    std::vector<HostSpan> spans;
    for (const pjrt::CallBuffer& result : first().results) {
      if (result.dtype == dtype) spans.push_back({result.data, result.elements()});
    }
    SLUICE_OK(world_.transport->all_reduce(spans, dtype, first().reduction));
  }
  return {};
}

base::Status Collective::gather_across_processes() const {
  for (size_t i = 0; i < first().results.size(); ++i) {
    const size_t bytes = first().operands[i].bytes() * replicas_.size();
    if (bytes > 0) SLUICE_OK(world_.transport->all_gather(first().results[i].data, bytes));
  }
  return {};
}

// Gathers all operands of all replicas here, piece by piece; groups that span processes are rare.
base::Status Collective::reduce_in_groups() const {
  const std::vector<int64_t>& groups = first().groups;
  const auto group_size = static_cast<size_t>(first().group_size);
  const size_t local = replicas_.size(), total = local * static_cast<size_t>(world_.processes);
  std::vector<char> all;
  for (size_t i = 0; i < first().operands.size(); ++i) {
    const pjrt::CallBuffer& like = first().operands[i];
    const size_t size = stablehlo::dtype_size(like.dtype), step = kPieceBytes / size;
    for (size_t begin = 0; begin < like.elements(); begin += step) {
      const size_t elements = std::min(step, like.elements() - begin), bytes = elements * size;
      all.resize(total * bytes);
      for (size_t r = 0; r < local; ++r) {
        std::memcpy(&all[global_replica(r) * bytes], at(replicas_[r]->operands[i], begin), bytes);
      }
      SLUICE_OK(world_.transport->all_gather(all.data(), local * bytes));
      for (size_t place = 0; place < groups.size(); ++place) {
        const size_t replica = static_cast<size_t>(groups[place]) - global_replica(0);
        if (replica >= local) continue;  // it belongs to another process (the subtraction wraps around)
        std::vector<const void*> inputs;
        for (size_t k = place - place % group_size, end = k + group_size; k < end; ++k) {
          inputs.push_back(&all[static_cast<size_t>(groups[k]) * bytes]);
        }
        void* output = at(replicas_[replica]->results[i], begin);
        reduce(like.dtype, first().reduction, inputs, {&output, 1}, elements);
      }
    }
  }
  return {};
}

}  // namespace sluice::collectives
