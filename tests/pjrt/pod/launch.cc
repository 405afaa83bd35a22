#include "tests/pjrt/pod/launch.h"

namespace emulated_pod {

std::string LaunchRequest::write() const {
  Writer out;
  out.number(number).text(program).numbers(after).status(arguments_status).number(inputs.size());
  for (const auto& list : inputs) {
    out.number(list.size());
    for (const Input& input : list)
      out.number(input.place.chunk).number(input.place.offset).number(input.donated);
  }
  for (const auto& list : outputs) {
    out.number(list.size());
    for (const Place& place : list) out.number(place.chunk).number(place.offset);
  }
  return out.take();
}

Result<LaunchRequest> LaunchRequest::read(std::string_view body) {
  Reader in(body);
  LaunchRequest request;
  request.number = in.number();
  request.program = in.text();
  request.after = in.numbers<uint64_t>();
  request.arguments_status = in.status();
  const uint64_t devices = in.number();
  for (uint64_t d = 0; d < devices && !in.broken(); ++d) {
    auto& list = request.inputs.emplace_back();
    for (uint64_t count = in.number(); count > 0 && !in.broken(); --count) {
      Input& input = list.emplace_back();
      input.place.chunk = in.number();
      input.place.offset = in.number();
      input.donated = in.number() != 0;
    }
  }
  for (uint64_t d = 0; d < devices && !in.broken(); ++d) {
    auto& list = request.outputs.emplace_back();
    for (uint64_t count = in.number(); count > 0 && !in.broken(); --count) {
      Place& place = list.emplace_back();
      place.chunk = in.number();
      place.offset = in.number();
    }
  }
  if (in.broken()) return fail(Code::kInternal, "a launch's message was cut short");
  return request;
}

}  // namespace emulated_pod
