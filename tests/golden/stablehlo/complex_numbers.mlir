module @complex_numbers attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<2xf64>, tensor<2xi1>) {
    %0 = "stablehlo.complex"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f32>>
    %1 = "stablehlo.multiply"(%0, %0) : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
    %2 = "stablehlo.constant"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %3 = "stablehlo.constant"() {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %4 = "stablehlo.complex"(%3, %2) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f32>>
    %5 = "stablehlo.multiply"(%0, %4) : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>
    %6 = "stablehlo.constant"() {value = dense<4.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %7 = "stablehlo.constant"() {value = dense<3.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %8 = "stablehlo.complex"(%7, %6) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f32>>
    %9 = "stablehlo.compare"(%0, %8) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>) -> tensor<2xi1>
    %10 = "stablehlo.real"(%1) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %11 = "stablehlo.imag"(%1) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %12 = "stablehlo.real"(%5) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %13 = "stablehlo.imag"(%5) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %14 = "stablehlo.abs"(%0) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %15 = "stablehlo.imag"(%0) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %16 = "stablehlo.negate"(%15) : (tensor<2xf32>) -> tensor<2xf32>
    %17 = "stablehlo.real"(%0) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %18 = "stablehlo.complex"(%17, %16) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xcomplex<f32>>
    %19 = "stablehlo.imag"(%18) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %20 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %21 = "stablehlo.complex"(%20, %20) : (tensor<f32>, tensor<f32>) -> tensor<complex<f32>>
    %23 = "stablehlo.reduce"(%0, %21) ({
    ^bb0(%b0: tensor<complex<f32>>, %b1: tensor<complex<f32>>):
      %22 = "stablehlo.add"(%b0, %b1) : (tensor<complex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
      "stablehlo.return"(%22) : (tensor<complex<f32>>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
    %24 = "stablehlo.real"(%23) : (tensor<complex<f32>>) -> tensor<f32>
    %25 = "stablehlo.convert"(%arg0) : (tensor<2xf32>) -> tensor<2xcomplex<f64>>
    %26 = "stablehlo.real"(%25) : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
    "func.return"(%10, %11, %12, %13, %14, %19, %24, %26, %9) : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<2xf64>, tensor<2xi1>) -> ()
  }
}
