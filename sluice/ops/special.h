// The part of the pointwise family that has a file of its own: what is made of other functions here.
#pragma once

#include "sluice/ops/common.h"

namespace sluice::ops::special {

Values gcd(Emit& e);
Values lcm(Emit& e);
Values bessel_i0(Emit& e);
Values bessel_i0e(Emit& e);
Values bessel_i1(Emit& e);
Values bessel_i1e(Emit& e);
Values log_normal_integral(Emit& e);
Values next_after(Emit& e);

}  // namespace sluice::ops::special
