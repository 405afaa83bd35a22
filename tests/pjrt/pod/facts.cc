#include "tests/pjrt/pod/facts.h"

#include <bit>

namespace emulated_pod {
namespace {

void write_shapes(Writer& out, const std::vector<Shape>& shapes) {
  out.number(shapes.size());
  for (const Shape& shape : shapes) out.number(shape.type).numbers(shape.dims);
}

std::vector<Shape> read_shapes(Reader& in) {
  std::vector<Shape> shapes;
  for (uint64_t count = in.number(); count > 0 && !in.broken(); --count) {
    Shape shape;
    shape.type = static_cast<c::PJRT_Buffer_Type>(in.number());
    shape.dims = in.numbers<int64_t>();
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace

size_t element_bytes(c::PJRT_Buffer_Type type) {
  switch (type) {
    case c::kInvalid:
      return 0;
    case c::kPred:
    case c::kS8:
    case c::kU8:
    case c::kF8E5M2:
    case c::kF8E4M3FN:
      return 1;
    case c::kS16:
    case c::kU16:
    case c::kF16:
    case c::kBF16:
      return 2;
    case c::kS32:
    case c::kU32:
    case c::kF32:
      return 4;
    case c::kS64:
    case c::kU64:
    case c::kF64:
    case c::kC64:
      return 8;
    case c::kC128:
      return 16;
  }
  return 0;
}

size_t Shape::bytes() const {
  size_t bytes = element_bytes(type);
  for (const int64_t dim : dims) bytes *= static_cast<size_t>(dim);
  return bytes;
}

void Facts::write(Writer& out) const {
  out.text(key).text(name).number(static_cast<uint64_t>(placement.replicas));
  out.number(static_cast<uint64_t>(placement.partitions)).numbers(placement.devices);
  write_shapes(out, parameters);
  write_shapes(out, outputs);
  out.numbers(donation);
  for (const int64_t bytes : memory) out.number(static_cast<uint64_t>(bytes));
  out.number(cost.size());
  for (const auto& [property, value] : cost) out.text(property).number(std::bit_cast<uint32_t>(value));
}

Result<Facts> Facts::read(Reader& in) {
  Facts facts;
  facts.key = in.text();
  facts.name = in.text();
  facts.placement.replicas = static_cast<int>(in.number());
  facts.placement.partitions = static_cast<int>(in.number());
  facts.placement.devices = in.numbers<int>();
  facts.parameters = read_shapes(in);
  facts.outputs = read_shapes(in);
  facts.donation = in.numbers<int64_t>();
  for (int64_t& bytes : facts.memory) bytes = static_cast<int64_t>(in.number());
  for (uint64_t count = in.number(); count > 0 && !in.broken(); --count) {
    std::string property(in.text());
    facts.cost.emplace_back(std::move(property), std::bit_cast<float>(static_cast<uint32_t>(in.number())));
  }
  if (in.broken() || facts.donation.size() != facts.parameters.size()) {
    return fail(Code::kInvalidArgument, "expected the description of a program, found something else");
  }
  return facts;
}

}  // namespace emulated_pod
