#include "sluice/data/torch_adapter.h"

#include <ATen/ops/from_blob.h>

namespace sluice::data {

c10::ScalarType scalar_type(ElementType type) {
  switch (type) {
    case ElementType::kBool:
      return c10::ScalarType::Bool;
    case ElementType::kUint8:
      return c10::ScalarType::Byte;
    case ElementType::kInt8:
      return c10::ScalarType::Char;
    case ElementType::kInt16:
      return c10::ScalarType::Short;
    case ElementType::kInt32:
      return c10::ScalarType::Int;
    case ElementType::kInt64:
      return c10::ScalarType::Long;
    case ElementType::kFloat16:
      return c10::ScalarType::Half;
    case ElementType::kFloat32:
      return c10::ScalarType::Float;
    case ElementType::kFloat64:
      return c10::ScalarType::Double;
  }
  return c10::ScalarType::Undefined;
}

at::Tensor to_tensor(const Array& array) {
  if (!array.defined()) return {};
  auto keep = [owner = array.owner()](void*) mutable { owner.reset(); };
  return at::from_blob(array.owner().get(), array.shape(), std::move(keep),
                       at::TensorOptions().dtype(scalar_type(array.type())));
}

}  // namespace sluice::data
