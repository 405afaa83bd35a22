// Special functions by the rational and Chebyshev approximations of Cephes (Moshier), with its coefficients,
// as LibTorch has them (ATen/native/Math.h): Bessel functions of orders 0 and 1, and the inverse of the
// normal distribution's integral.
#include <cmath>
#include <numbers>

#include "sluice/ops/special/special.h"

namespace sluice::ops::special {
namespace {

// J and Y are computed near 0 by R (J) and Y in x², far from 0 by P and Q in (5 / x)². Highest powers first.
constexpr double kJ0ROver[] = {-4.79443220978201773821e+09, 1.95617491946556577543e+12,
                               -2.49248344360967716204e+14, 9.70862251047306323952e+15};
constexpr double kJ0RUnder[] = {4.99563147152651017219e+02, 1.73785401676374683123e+05,
                                4.84409658339962045305e+07, 1.11855537045356834862e+10,
                                2.11277520115489217587e+12, 3.10518229857422583814e+14,
                                3.18121955943204943306e+16, 1.71086294081043136091e+18};
constexpr double kJ0POver[] = {7.96936729297347051624e-04, 8.28352392107440799803e-02,
                               1.23953371646414299388e+00, 5.44725003058768775090e+00,
                               8.74716500199817011941e+00, 5.30324038235394892183e+00,
                               9.99999999999999997821e-01};
constexpr double kJ0PUnder[] = {9.24408810558863637013e-04, 8.56288474354474431428e-02,
                                1.25352743901058953537e+00, 5.47097740330417105182e+00,
                                8.76190883237069594232e+00, 5.30605288235394617618e+00,
                                1.00000000000000000218e+00};
constexpr double kJ0QOver[] = {-1.13663838898469149931e-02, -1.28252718670509318512e+00,
                               -1.95539544257735972385e+01, -9.32060152123768231369e+01,
                               -1.77681167980488050595e+02, -1.47077505154951170175e+02,
                               -5.14105326766599330220e+01, -6.05014350600728481186e+00};
constexpr double kJ0QUnder[] = {6.43178256118178023184e+01, 8.56430025976980587198e+02,
                                3.88240183605401609683e+03, 7.24046774195652478189e+03,
                                5.93072701187316984827e+03, 2.06209331660327847417e+03,
                                2.42005740240291393179e+02};
constexpr double kJ1ROver[] = {-8.99971225705559398224e+08, 4.52228297998194034323e+11,
                               -7.27494245221818276015e+13, 3.68295732863852883286e+15};
constexpr double kJ1RUnder[] = {6.20836478118054335476e+02, 2.56987256757748830383e+05,
                                8.35146791431949253037e+07, 2.21511595479792499675e+10,
                                4.74914122079991414898e+12, 7.84369607876235854894e+14,
                                8.95222336184627338078e+16, 5.32278620332680085395e+18};
constexpr double kJ1POver[] = {7.62125616208173112003e-04, 7.31397056940917570436e-02,
                               1.12719608129684925192e+00, 5.11207951146807644818e+00,
                               8.42404590141772420927e+00, 5.21451598682361504063e+00,
                               1.00000000000000000254e+00};
constexpr double kJ1PUnder[] = {5.71323128072548699714e-04, 6.88455908754495404082e-02,
                                1.10514232634061696926e+00, 5.07386386128601488557e+00,
                                8.39985554327604159757e+00, 5.20982848682361821619e+00,
                                9.99999999999999997461e-01};
constexpr double kJ1QOver[] = {5.10862594750176621635e-02, 4.98213872951233449420e+00,
                               7.58238284132545283818e+01, 3.66779609360150777800e+02,
                               7.10856304998926107277e+02, 5.97489612400613639965e+02,
                               2.11688757100572135698e+02, 2.52070205858023719784e+01};
constexpr double kJ1QUnder[] = {7.42373277035675149943e+01, 1.05644886038262816351e+03,
                                4.98641058337653607651e+03, 9.56231892404756170795e+03,
                                7.99704160447350683650e+03, 2.82619278517639096600e+03,
                                3.36093607810698293419e+02};
constexpr double kY0Over[] = {1.55924367855235737965e+04, -1.46639295903971606143e+07,
                              5.43526477051876500413e+09, -9.82136065717911466409e+11,
                              8.75906394395366999549e+13, -3.46628303384729719441e+15,
                              4.42733268572569800351e+16, -1.84950800436986690637e+16};
constexpr double kY0Under[] = {1.04128353664259848412e+03, 6.26107330137134956842e+05,
                               2.68919633393814121987e+08, 8.64002487103935000337e+10,
                               2.02979612750105546709e+13, 3.17157752842975028269e+15,
                               2.50596256172653059228e+17};
constexpr double kY1Over[] = {1.26320474790178026440e+09, -6.47355876379160291031e+11,
                              1.14509511541823727583e+14, -8.12770255501325109621e+15,
                              2.02439475713594898196e+17, -7.78877196265950026825e+17};
constexpr double kY1Under[] = {5.94301592346128195359e+02, 2.35564092943068577943e+05,
                               7.34811944459721705660e+07, 1.87601316108706159478e+10,
                               3.88231277496238566008e+12, 6.20557727146953693363e+14,
                               6.87141087355300489866e+16, 3.97270608116560655612e+18};
constexpr double kK0Near[] = {1.37446543561352307156e-16, 4.25981614279661018399e-14,
                              1.03496952576338420167e-11, 1.90451637722020886025e-09,
                              2.53479107902614945675e-07, 2.28621210311945178607e-05,
                              1.26461541144692592338e-03, 3.59799365153615016266e-02,
                              3.44289899924628486886e-01, -5.35327393233902768720e-01};
constexpr double kK0Far[] = {
    5.30043377268626276149e-18,  -1.64758043015242134646e-17, 5.21039150503902756861e-17,
    -1.67823109680541210385e-16, 5.51205597852431940784e-16,  -1.84859337734377901440e-15,
    6.34007647740507060557e-15,  -2.22751332699166985548e-14, 8.03289077536357521100e-14,
    -2.98009692317273043925e-13, 1.14034058820847496303e-12,  -4.51459788337394416547e-12,
    1.85594911495471785253e-11,  -7.95748924447710747776e-11, 3.57739728140030116597e-10,
    -1.69753450938905987466e-09, 8.57403401741422608519e-09,  -4.66048989768794782956e-08,
    2.76681363944501510342e-07,  -1.83175552271911948767e-06, 1.39498137188764993662e-05,
    -1.28495495816278026384e-04, 1.56988388573005337491e-03,  -3.14481013119645005427e-02,
    2.44030308206595545468e+00};
constexpr double kK1Near[] = {
    -7.02386347938628759343e-18, -2.42744985051936593393e-15, -6.66690169419932900609e-13,
    -1.41148839263352776110e-10, -2.21338763073472585583e-08, -2.43340614156596823496e-06,
    -1.73028895751305206302e-04, -6.97572385963986435018e-03, -1.22611180822657148235e-01,
    -3.53155960776544875667e-01, 1.52530022733894777053e+00};
constexpr double kK1Far[] = {
    -5.75674448366501715755e-18, 1.79405087314755922667e-17,  -5.68946255844285935196e-17,
    1.83809354436663880070e-16,  -6.05704724837331885336e-16, 2.03870316562433424052e-15,
    -7.01983709041831346144e-15, 2.47715442448130437068e-14,  -8.97670518232499435011e-14,
    3.34841966607842919884e-13,  -1.28917396095102890680e-12, 5.13963967348173025100e-12,
    -2.12996783842756842877e-11, 9.21831518760500529508e-11,  -4.19035475934189648750e-10,
    2.01504975519703286596e-09,  -1.03457624656780970260e-08, 5.74108412545004946722e-08,
    -3.50196060308781257119e-07, 2.40648494783721712015e-06,  -1.93619797416608296024e-05,
    1.95215518471351631108e-04,  -2.85781685962277938680e-03, 1.03923736576817238437e-01,
    2.72062619048444266945e+00};
constexpr double kMiddleOver[] = {-5.99633501014107895267E1, 9.80010754185999661536E1,
                                  -5.66762857469070293439E1, 1.39312609387279679503E1,
                                  -1.23916583867381258016E0};
constexpr double kMiddleUnder[] = {
    1.00000000000000000000E0,  1.95448858338141759834E0,  4.67627912898881538453E0,
    8.63602421390890590575E1,  -2.25462687854119370527E2, 2.00260212380060660359E2,
    -8.20372256168333339912E1, 1.59056225126211695515E1,  -1.18331621121330003142E0};
constexpr double kTailOver[] = {
    4.05544892305962419923E0,   3.15251094599893866154E1,   5.71628192246421288162E1,
    4.40805073893200834700E1,   1.46849561928858024014E1,   2.18663306850790267539E0,
    -1.40256079171354495875E-1, -3.50424626827848203418E-2, -8.57456785154685413611E-4};
constexpr double kTailUnder[] = {
    1.00000000000000000000E0,   1.57799883256466749731E1,   4.53907635128879210584E1,
    4.13172038254672030440E1,   1.50425385692907503408E1,   2.50464946208309415979E0,
    -1.42182922854787788574E-1, -3.80806407691578277194E-2, -9.33259480895457427372E-4};
constexpr double kFarTailOver[] = {
    3.23774891776946035970E0,  6.91522889068984211695E0,  3.93881025292474443415E0,
    1.33303460815807542389E0,  2.01485389549179081538E-1, 1.23716634817820021358E-2,
    3.01581553508235416007E-4, 2.65806974686737550832E-6, 6.23974539184983293730E-9};
constexpr double kFarTailUnder[] = {
    1.00000000000000000000E0,  6.02427039364742014255E0,  3.67983563856160859403E0,
    1.37702099489081330271E0,  2.16236993594496635890E-1, 1.34204006088543189037E-2,
    3.28014464682127739104E-4, 2.89247864745380683936E-6, 6.79019408009981274425E-9};

}  // namespace

Value polynomial(Builder& b, Value x, std::span<const double> coefficients) {
  Value sum = number_like(b, coefficients[0], x);
  for (const double c : coefficients.subspan(1)) sum = b.add(b.multiply(sum, x), number_like(b, c, x));
  return sum;
}
Value ratio(Builder& b, Value x, std::span<const double> over, std::span<const double> under) {
  return b.divide(polynomial(b, x, over), polynomial(b, x, under));
}

namespace {

// J and Y for x above 5. J is sqrt(2 / (pi x)) (P cos(x - turn) - 5 / x Q sin(x - turn)). For Y, sin replaces
// cos, and cos replaces -sin.
struct Far {
  std::span<const double> p_over, p_under, q_over, q_under;
  double turn;
  Value operator()(Builder& b, Value x, bool second) const {
    const Value inverse = b.divide(number_like(b, 5, x), x), square = b.multiply(inverse, inverse);
    const Value p = ratio(b, square, p_over, p_under);
    const Value q = b.multiply(inverse, ratio(b, square, q_over, q_under));
    const Value angle = b.subtract(x, number_like(b, turn, x)), cosine = b.cosine(angle),
                sine = b.sine(angle);
    const Value wave = second ? b.add(b.multiply(p, sine), b.multiply(q, cosine))
                              : b.subtract(b.multiply(p, cosine), b.multiply(q, sine));
    return b.divide(b.multiply(wave, number_like(b, std::sqrt(2 / std::numbers::pi), x)), b.sqrt(x));
  }
};
constexpr Far kFar0{kJ0POver, kJ0PUnder, kJ0QOver, kJ0QUnder, std::numbers::pi / 4};
constexpr Far kFar1{kJ1POver, kJ1PUnder, kJ1QOver, kJ1QUnder, 3 * std::numbers::pi / 4};

Value is_near(Builder& b, Value x, double end) { return b.compare(x, number_like(b, end, x), Compare::kLe); }

// The squares of the first two zeros of J0 and J1.
constexpr double kZeros0[] = {5.78318596294678452118, 30.4712623436620863991};
constexpr double kZeros1[] = {14.6819706421238932572, 49.2184563216946036703};

Value between_zeros(Builder& b, Value square, std::span<const double> zeros) {
  return b.multiply(b.subtract(square, number_like(b, zeros[0], square)),
                    b.subtract(square, number_like(b, zeros[1], square)));
}

Value j0(Builder& b, Value x) {
  x = b.abs(x);
  const Value square = b.multiply(x, x);
  const Value near = b.multiply(between_zeros(b, square, kZeros0), ratio(b, square, kJ0ROver, kJ0RUnder));
  return b.select(is_near(b, x, 5), near, kFar0(b, x, false));
}
Value j1(Builder& b, Value x) {
  const Value size = b.abs(x), square = b.multiply(x, x);
  const Value near =
      b.multiply(b.multiply(ratio(b, square, kJ1ROver, kJ1RUnder), x), between_zeros(b, square, kZeros1));
  const Value far = kFar1(b, size, false);
  return b.select(is_near(b, size, 5), near, b.select(is_less(b, x, 0), b.negate(far), far));
}

// Corrects the result of a function that is undefined below 0 and has a pole at 0.
Value right_of_pole(Builder& b, Value x, Value result, double pole) {
  result = b.select(is_less(b, x, 0), number_like(b, NAN, x), result);
  return b.select(is_equal(b, x, 0), number_like(b, pole, x), result);
}

Value y0(Builder& b, Value x) {
  const Value square = b.multiply(x, x), log = b.multiply(b.log(x), number_like(b, 2 / std::numbers::pi, x));
  const Value near = b.add(ratio(b, square, kY0Over, kY0Under), b.multiply(log, j0(b, x)));
  return right_of_pole(b, x, b.select(is_near(b, x, 5), near, kFar0(b, x, true)), -INFINITY);
}
Value y1(Builder& b, Value x) {
  const Value square = b.multiply(x, x), one = number_like(b, 1, x);
  const Value rest = b.subtract(b.multiply(j1(b, x), b.log(x)), b.divide(one, x));
  const Value near = b.add(b.multiply(x, ratio(b, square, kY1Over, kY1Under)),
                           b.multiply(rest, number_like(b, 2 / std::numbers::pi, x)));
  return right_of_pole(b, x, b.select(is_near(b, x, 5), near, kFar1(b, x, true)), -INFINITY);
}

// Returns K, or exp(x) K.
template <bool Scaled, bool First>
Value k(Builder& b, Value x) {
  const auto number = [&](double n) { return number_like(b, n, x); };
  const Value square = b.subtract(b.multiply(x, x), number(2)), log = b.log(b.multiply(x, number(0.5)));
  Value near = First ? b.add(b.multiply(log, i1(b, x)), b.divide(chebyshev(b, square, kK1Near), x))
                     : b.subtract(chebyshev(b, square, kK0Near), b.multiply(log, i0(b, x)));
  Value far = b.divide(chebyshev(b, b.subtract(b.divide(number(8), x), number(2)), First ? kK1Far : kK0Far),
                       b.sqrt(x));
  if (Scaled)
    near = b.multiply(near, b.exp(x));
  else
    far = b.multiply(far, b.exp(b.negate(x)));
  return right_of_pole(b, x, b.select(is_near(b, x, 2), near, far), INFINITY);
}

Value spherical_j0(Builder& b, Value x) {
  const Value square = b.multiply(x, x), zero = number_like(b, 0, x);
  Value series = number_like(b, 1, x);
  for (const double n : {156, 110, 72, 42, 20, 6})
    series = b.subtract(number_like(b, 1, x), b.multiply(series, b.divide(square, number_like(b, n, x))));
  const Value far = b.select(is_equal(b, b.abs(x), INFINITY), zero, b.divide(b.sine(x), x));
  return b.select(is_less(b, b.abs(x), 0.5), series, far);
}

Value ndtri(Builder& b, Value p) {
  const auto number = [&](double n) { return number_like(b, n, p); };
  constexpr double kTail = 0.13533528323661269189;  // exp(-2)
  const Value above = b.compare(p, number(1 - kTail), Compare::kGt);
  const Value y = b.select(above, b.subtract(number(1), p), p);
  const Value from_half = b.subtract(y, number(0.5)), square = b.multiply(from_half, from_half);
  const Value middle = b.multiply(
      b.add(from_half,
            b.multiply(from_half, b.multiply(square, ratio(b, square, kMiddleOver, kMiddleUnder)))),
      number(std::sqrt(2 * std::numbers::pi)));
  const Value x = b.sqrt(b.multiply(number(-2), b.log(y))), inverse = b.divide(number(1), x);
  const Value correction =
      b.multiply(inverse, b.select(is_less(b, x, 8), ratio(b, inverse, kTailOver, kTailUnder),
                                   ratio(b, inverse, kFarTailOver, kFarTailUnder)));
  const Value tail = b.subtract(b.subtract(x, b.divide(b.log(x), x)), correction);
  Value result =
      b.select(b.compare(y, number(kTail), Compare::kGt), middle, b.select(above, tail, b.negate(tail)));
  result = b.select(is_equal(b, p, 0), number(-INFINITY), result);
  result = b.select(is_equal(b, p, 1), number(INFINITY), result);
  const Value outside = b.or_(is_less(b, p, 0), b.compare(p, number(1), Compare::kGt));
  return b.select(outside, number(NAN), result);
}

// For functions whose argument LibTorch calls `x`.
template <auto Fn>
Values of_x(Emit& e) {
  const DType dtype = e.promote_float({"x"});
  return {to(e.b, Fn(e.b, e.operand("x", compute_type(dtype))), dtype)};
}

}  // namespace

Values bessel_j0(Emit& e) { return float_unary<j0>(e); }
Values bessel_j1(Emit& e) { return float_unary<j1>(e); }
Values bessel_y0(Emit& e) { return float_unary<y0>(e); }
Values bessel_y1(Emit& e) { return float_unary<y1>(e); }
Values bessel_k0(Emit& e) { return float_unary<k<false, false>>(e); }
Values bessel_k1(Emit& e) { return float_unary<k<false, true>>(e); }
Values scaled_bessel_k0(Emit& e) { return of_x<k<true, false>>(e); }
Values scaled_bessel_k1(Emit& e) { return of_x<k<true, true>>(e); }
Values spherical_bessel_j0(Emit& e) { return of_x<spherical_j0>(e); }
Values inverse_normal_integral(Emit& e) { return float_unary<ndtri>(e); }

}  // namespace sluice::ops::special
