// Layouts of gradients that a program keeps.
//
// The walk from an update back to what it is computed from (layouts.h) reaches a gradient only in a program
// that has the update. In other programs, such as the ones of the earlier batches of an update, a gradient
// gets its parameter's layout from here.
#pragma once

#include <ATen/core/Tensor.h>

#include "sluice/mesh/mesh.h"

namespace sluice::device {

// From now on the gradient of this parameter lies like the parameter, as long as that has a layout. Takes the
// trace's lock.
void lay_out_gradient_of(const at::Tensor& parameter);
// Gives the gradients of these parameters that are pending the parameters' layouts. Needs the trace's lock.
void lay_out_gradients(const Mesh& mesh);

}  // namespace sluice::device
