// Complex numbers and Fourier transforms.
#include "sluice/stablehlo/builder/impl.h"

namespace sluice::stablehlo {
namespace {

const char* fft_text(Fft kind) {
  switch (kind) {
    case Fft::kForward:
      return "#stablehlo<fft_type FFT>";
    case Fft::kInverse:
      return "#stablehlo<fft_type IFFT>";
    case Fft::kRealForward:
      return "#stablehlo<fft_type RFFT>";
    case Fft::kRealInverse:
      return "#stablehlo<fft_type IRFFT>";
  }
  return "";
}

}  // namespace

Value Builder::complex(Value real, Value imaginary) {
  constexpr std::string_view kOp = "stablehlo.complex";
  impl_->use(kOp, {real, imaginary});
  impl_->check_same(kOp, real, imaginary);
  if (real.dtype() != DType::kF32 && real.dtype() != DType::kF64)
    reject(kOp, "the parts must be f32 or f64, found ", real.type().str());
  return impl_->add(kOp, {real, imaginary}, {}, Type{complex_dtype(real.dtype()), real.dims()});
}

Value Builder::real(Value x) {
  constexpr std::string_view kOp = "stablehlo.real";
  impl_->use(kOp, x);
  if (!is_complex(x.dtype())) return x;
  return impl_->add(kOp, {x}, {}, Type{real_dtype(x.dtype()), x.dims()});
}

Value Builder::imaginary(Value x) {
  constexpr std::string_view kOp = "stablehlo.imag";
  impl_->use(kOp, x);
  if (!is_complex(x.dtype())) return splat(0, x.type());
  return impl_->add(kOp, {x}, {}, Type{real_dtype(x.dtype()), x.dims()});
}

Value Builder::conjugate(Value x) {
  return is_complex(x.dtype()) ? complex(real(x), negate(imaginary(x))) : x;
}

Value Builder::fft(Value x, Fft kind, int64_t length) {
  constexpr std::string_view kOp = "stablehlo.fft";
  impl_->use(kOp, x);
  const bool from_real = kind == Fft::kRealForward, to_real = kind == Fft::kRealInverse;
  impl_->check_dtype(kOp, x, from_real ? kFloats : kComplex);
  const int64_t half = length / 2 + 1, last = x.rank() - 1;
  if (x.rank() == 0 || length < 1 || x.dim(last) != (to_real ? half : length))
    reject(kOp, "the last dimension must have ", to_real ? half : length,
           " elements for a transform of length ", length, ", found ", x.type().str());
  Type result = x.type();
  if (from_real) result = {complex_dtype(x.dtype()), result.dims};
  if (to_real) result.dtype = real_dtype(x.dtype());
  result.dims.back() = from_real ? half : length;
  return impl_->add(kOp, {x}, Attributes().raw("fft_type", fft_text(kind)).ints("fft_length", Dims{length}),
                    result);
}

}  // namespace sluice::stablehlo
