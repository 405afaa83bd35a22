// oneDNN (Debian's libdnnl, version 2), opened at run time. Internal to this room.
//
// LibTorch has a oneDNN of its own inside, of another version, whose headers hide Debian's and some of whose
// symbols are exported: so nothing here is included by a target that sees LibTorch, and the library is opened
// with RTLD_LOCAL instead of being linked. Of its implementations only those that generate their code for
// the shape ("jit", "brg") are taken: the reference ones are slower than XLA, and those over its general
// matrix product share symbols with LibTorch's copy.
#pragma once

#include <dnnl.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::kernels {

// The functions of the library that are used here.
#define SLUICE_ONEDNN_FUNCTIONS(X)                  \
  X(version)                                        \
  X(engine_create)                                  \
  X(stream_create)                                  \
  X(memory_desc_init_by_strides)                    \
  X(memory_desc_init_by_tag)                        \
  X(memory_desc_init_submemory)                     \
  X(memory_desc_get_size)                           \
  X(memory_desc_equal)                              \
  X(dilated_convolution_forward_desc_init)          \
  X(dilated_convolution_backward_data_desc_init)    \
  X(dilated_convolution_backward_weights_desc_init) \
  X(matmul_desc_init)                               \
  X(primitive_attr_create)                          \
  X(primitive_attr_destroy)                         \
  X(primitive_attr_set_scratchpad_mode)             \
  X(primitive_attr_set_post_ops)                    \
  X(post_ops_create)                                \
  X(post_ops_append_sum)                            \
  X(post_ops_destroy)                               \
  X(primitive_desc_create)                          \
  X(primitive_desc_destroy)                         \
  X(primitive_desc_query)                           \
  X(primitive_desc_query_md)                        \
  X(reorder_primitive_desc_create)                  \
  X(primitive_create)                               \
  X(primitive_destroy)                              \
  X(primitive_execute)                              \
  X(memory_create)                                  \
  X(memory_destroy)

struct Onednn {
#define SLUICE_DECLARE(name) decltype(&dnnl_##name) name;
  SLUICE_ONEDNN_FUNCTIONS(SLUICE_DECLARE)
#undef SLUICE_DECLARE
  dnnl_engine_t engine;
  dnnl_stream_t stream;

  // Opens the library at the first call. kNotFound without it, kUnimplemented for another version than that
  // of the headers. Threads: any.
  static base::Result<const Onednn*> open();
};

// An argument of a primitive: what its memory looks like, and where it is.
struct Argument {
  int number;  // DNNL_ARG_…
  const dnnl_memory_desc_t* layout;
  void* data;
};

// A primitive of a fixed shape. Threads: execute() may run many times at once.
class Primitive {
 public:
  // From a description (dnnl_convolution_desc_t and the like). Nothing when the library has only a slow
  // implementation for it, or none. `forward` is the forward primitive of a gradient's; `added`: the result
  // is added to what lies in its memory.
  static std::unique_ptr<Primitive> create(const_dnnl_op_desc_t description,
                                           const Primitive* forward = nullptr, bool added = false);
  // c = a b, matrices or batches of them; likewise.
  static std::unique_ptr<Primitive> product(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b,
                                            const dnnl_memory_desc_t& c, bool added = false);
  // From one layout to another, over the same dims.
  static std::unique_ptr<Primitive> reorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  // The layout that the primitive wants for this argument.
  const dnnl_memory_desc_t& layout(dnnl_query_t what) const;
  // kInternal when the library refuses.
  base::Status execute(std::span<const Argument> arguments) const;

 private:
  Primitive() = default;
  static std::unique_ptr<Primitive> finish(dnnl_primitive_desc_t description);
  dnnl_primitive_desc_t description_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::string implementation_;
  size_t scratch_bytes_ = 0;
};

// A tensor's change from one layout to another over the same dims, in parts along the dimension that is
// slowest in both, where there is one.
class Reorder {
 public:
  // Null where the library refuses.
  static std::unique_ptr<Reorder> make(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to);
  // On the threads of a call.
  base::Status run(void* from, void* to) const;

 private:
  struct Part {
    dnnl_memory_desc_t from, to;
    std::unique_ptr<Primitive> primitive;
  };
  static Part make_part(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, int dimension,
                        int64_t extent);
  size_t parts_ = 0, from_step_ = 0, to_step_ = 0;  // elements from one part to the next
  Part full_, last_;
};

// Dense, dimension order[0] slowest. f32.
dnnl_memory_desc_t dense(std::span<const int64_t> dims, std::span<const int> order);
// The same of [batch, rows, columns], with each row's columns in blocks: [batch, blocks, rows, columns of a
// block], filled up.
dnnl_memory_desc_t in_panels(const std::array<int64_t, 3>& dims, int64_t block);
dnnl_memory_desc_t any_layout(std::span<const int64_t> dims);
bool same_layout(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b);
size_t layout_bytes(const dnnl_memory_desc_t& layout);
// The offset of an element in its memory, in elements.
size_t offset_in(const dnnl_memory_desc_t& layout, std::vector<int64_t> index);

}  // namespace sluice::kernels
