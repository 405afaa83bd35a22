#include "tests/conformance/partitioned/runner.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "tests/common/under_test.h"

namespace sluice::conformance {
namespace {

// How many cases may be open before they are compiled together.
constexpr size_t kMaxPending = 48;

void bring_home(std::vector<at::Tensor>& tensors) {
  for (at::Tensor& tensor : tensors)
    if (tensor.defined()) tensor = tensor.cpu();
}

// "" if the call gave what LibTorch gives.
std::string difference_of(Open& open) {
  try {
    at::NoGradGuard no_grad;
    for (auto* tensors : {&open.found.results, &open.found.gradients, &open.found.bases})
      bring_home(*tensors);
    const Verdict verdict = judge(open);
    return verdict.messages.empty() ? "" : verdict.messages.front();
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
}

bool has(const Case& how, Placing::Kind kind) {
  return std::any_of(how.tensors.begin(), how.tensors.end(),
                     [&](const Placing& placing) { return placing.kind == kind; });
}

bool has_sum(const Case& how) { return has(how, Placing::Kind::kUnreduced); }

bool lays_out_results(const Subject& subject) {
  const auto can_be = [](const at::Tensor& result) {
    const Layout layout = result.defined() ? spread(result.sizes()) : Layout();
    return std::any_of(layout.dims().begin(), layout.dims().end(),
                       [](const LayoutDim& dim) { return !dim.axes.empty(); });
  };
  return std::any_of(subject.expected.results.begin(), subject.expected.results.end(), can_be);
}

// Whether the case says something that the one without laid-out results does not.
bool is_new(const Case& how, const Subject& subject) {
  return has(how, Placing::Kind::kLaidOut) || (has_sum(how) && !how.results) || lays_out_results(subject);
}

}  // namespace

std::string Runner::Pending::name() const {
  return subject->what + ", " + how.name + (in_place ? ", in place" : "");
}

bool Runner::add(const Sample& sample, size_t number) {
  journal_.add("begin", std::to_string(number));
  const auto plain = make_subject(sample, View::kPlain);
  if (plain == nullptr) {
    journal_.add("refused", sample.op);
    return false;
  }
  const bool laid_out = add_cases(plain, cases_of(plain->inputs));
  if (!sample.noview && !sample.random && !plain->inputs.tensors.empty()) {
    constexpr View kViews[] = {View::kTransposed, View::kSliced, View::kExpanded};
    const auto view = make_subject(sample, kViews[static_cast<size_t>(sample.line) % std::size(kViews)]);
    if (view != nullptr) add_cases(view, few_cases_of(view->inputs));
  }
  if (options_.alone || pending_.size() >= kMaxPending) flush();
  return laid_out;
}

bool Runner::add_cases(const std::shared_ptr<const Subject>& subject, const std::vector<Case>& cases) {
  bool laid_out = false;
  size_t number = static_cast<size_t>(subject->sample.line);
  for (const Case& how : cases) {
    if (number++ % options_.every != 0 || !is_new(how, *subject)) continue;
    laid_out = laid_out || has(how, Placing::Kind::kLaidOut);
    add_case({subject, how});
    const bool first = !how.tensors.empty() && how.tensors[0].kind != Placing::Kind::kWhole;
    if (first && subject->in_place) add_case({subject, how, true});
  }
  return laid_out;
}

void Runner::add_case(Pending pending) {
  const std::string name = pending.name();
  if (const KnownDifference* entry = known_.find(pending.subject->sample.op, name)) {
    if (entry->crashes()) {
      journal_.add("known", std::to_string(entry->line));
      return;
    }
    journal_.add("met", std::to_string(entry->line));
  }
  if (options_.alone) journal_.add("case", name);
  record(pending);
  pending_.push_back(std::move(pending));
  if (!options_.alone) return;
  Pending one = std::move(pending_.back());
  pending_.pop_back();
  settle(one, error_of_program());
}

void Runner::record(Pending& pending) const {
  const Subject& subject = *pending.subject;
  const Case& how = pending.how;
  Open& open = pending.open;
  open = open_call(subject.sample, subject.inputs, pending.name());
  open.main = true;
  open.gradients = subject.gradients && !pending.in_place;
  CallOptions options{device_, false, open.gradients};
  options.place = [&](size_t number, const at::Tensor& host) {
    const Placing whole;
    return place(number < how.tensors.size() ? how.tensors[number] : whole, host, device_, options_.broken);
  };
  at::manual_seed(subject.inputs.seed + 1'000'003);
  if (pending.in_place) {
    open.expected = subject.expected_in_place;
    open.wide = subject.wide_in_place;
    open.found = call_in_place(*subject.in_place, subject.inputs, options);
  } else {
    open.expected = subject.expected;
    open.wide = subject.wide;
    open.found = call(*subject.op, subject.inputs, options);
  }
  if (how.results && !pending.in_place) {
    spread_out(open.found.results);
    spread_out(open.found.gradients);
  }
  make_dense(open.found.results);
  make_dense(open.found.gradients);
  // A sum that is a result of the program would be whole for this.
  if (has_sum(how)) {
    for (Outcome* outcome : {&open.found, &open.expected, &open.wide}) outcome->bases.clear();
  }
}

void Runner::flush() {
  const std::string trouble = pending_.empty() ? "" : error_of_program();
  std::vector<Pending> pending = std::exchange(pending_, {});
  // A program holds many cases: one at a time tells which of them is at fault.
  if (!trouble.empty())
    for (Pending& one : pending) one.open.found = Outcome();
  for (Pending& one : pending) {
    if (!trouble.empty()) record(one);
    settle(one, trouble.empty() ? "" : error_of_program());
  }
  journal_.add("done");
}

void Runner::settle(Pending& pending, const std::string& trouble) {
  journal_.add("ran", pending.subject->sample.op);
  const std::string message =
      trouble.empty() ? difference_of(pending.open) : "program: " + first_line(trouble);
  pending.open = Open{};
  if (!message.empty()) differs(pending, message);
}

std::string Runner::difference_of_whole(const Pending& pending) const {
  Pending whole{pending.subject, Case{}, pending.in_place};
  record(whole);
  const std::string trouble = error_of_program();
  return trouble.empty() ? difference_of(whole.open) : trouble;
}

void Runner::differs(const Pending& pending, const std::string& message) {
  const Sample& sample = pending.subject->sample;
  const std::string name = pending.name();
  const std::string whole = difference_of_whole(pending);
  if (!whole.empty()) {
    journal_.add("alike", sample.op);
    std::printf("ALIKE %s (%s): %s; whole: %s\n", sample.where().c_str(), name.c_str(), message.c_str(),
                first_line(whole).c_str());
  } else if (const KnownDifference* entry = known_.find(sample.op, name)) {
    journal_.add("known", std::to_string(entry->line));
  } else {
    journal_.add("failed", name);
    std::printf("FAIL %s (%s): %s\n", sample.where().c_str(), name.c_str(), message.c_str());
  }
  std::fflush(stdout);
}

}  // namespace sluice::conformance
