// oneDNN (Debian's libdnnl, version 2), opened at run time. Internal to this room.
//
// LibTorch contains another version of oneDNN, whose headers hide Debian's and which exports some of its
// symbols. So no target that sees LibTorch includes this, and the library is opened with RTLD_LOCAL instead
// of being linked. Only implementations that generate their code for the shape ("jit", "brg") are used: the
// reference ones are slower than XLA, and those based on its general matrix product share symbols with
// LibTorch's copy.
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

  // Opens the library at the first call. kNotFound without it, kUnimplemented if its version differs from the
  // headers'. Threads: any.
  static base::Result<const Onednn*> open();
};

// An argument of a primitive: its layout and its address.
struct Argument {
  int number;  // DNNL_ARG_…
  const dnnl_memory_desc_t* layout;
  void* data;
};

// A primitive of a fixed shape. Threads: execute() may run many times at once.
class Primitive {
 public:
  // Makes a primitive from a description (dnnl_convolution_desc_t and the like). Nothing if the library has
  // only a slow implementation, or none. `forward` is the forward primitive of a gradient; `added`: the
  // result is added to the contents of its memory.
  static std::unique_ptr<Primitive> create(const_dnnl_op_desc_t description,
                                           const Primitive* forward = nullptr, bool added = false);
  // Makes the product c = a b of matrices or of batches of them. Nothing and `added`: as in create().
  static std::unique_ptr<Primitive> product(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b,
                                            const dnnl_memory_desc_t& c, bool added = false);
  // Makes a change from one layout to another, over the same dims.
  static std::unique_ptr<Primitive> reorder(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to);
  ~Primitive();
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  // Returns the layout that the primitive wants for this argument.
  const dnnl_memory_desc_t& layout(dnnl_query_t what) const;
  // Runs the primitive; kInternal when the library refuses.
  base::Status execute(std::span<const Argument> arguments) const;

 private:
  Primitive() = default;
  static std::unique_ptr<Primitive> finish(dnnl_primitive_desc_t description);
  dnnl_primitive_desc_t description_ = nullptr;
  dnnl_primitive_t primitive_ = nullptr;
  std::string implementation_;
  size_t scratch_bytes_ = 0;
};

// Changes a tensor's layout over the same dims, in parts along the dimension that is slowest in both layouts,
// if there is one.
class Reorder {
 public:
  // Null if the library refuses.
  static std::unique_ptr<Reorder> make(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to);
  // Runs on the threads of a call.
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

// Returns a dense f32 layout, dimension order[0] slowest.
dnnl_memory_desc_t dense(std::span<const int64_t> dims, std::span<const int> order);
// Returns the dense layout of [batch, rows, columns] with each row's columns in blocks: [batch, blocks, rows,
// columns of a block], padded.
dnnl_memory_desc_t in_panels(const std::array<int64_t, 3>& dims, int64_t block);
dnnl_memory_desc_t any_layout(std::span<const int64_t> dims);
bool same_layout(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b);
size_t layout_bytes(const dnnl_memory_desc_t& layout);
// Returns the offset of an element in its memory, in elements.
size_t offset_in(const dnnl_memory_desc_t& layout, std::vector<int64_t> index);

}  // namespace sluice::kernels
