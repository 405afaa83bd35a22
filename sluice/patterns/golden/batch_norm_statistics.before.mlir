module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x32x32xf32>, %arg2: tensor<4xf32>) -> (tensor<8x4x32x32xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%arg0, %0) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %1 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%1) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %3 = "stablehlo.constant"() {value = dense<8192.0> : tensor<4xf32>} : () -> tensor<4xf32>
    %4 = "stablehlo.divide"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %6 = "stablehlo.subtract"(%arg0, %5) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %7 = "stablehlo.multiply"(%6, %6) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %9 = "stablehlo.reduce"(%7, %0) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %8 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %10 = "stablehlo.divide"(%9, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %11 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %12 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %13 = "stablehlo.add"(%10, %12) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %14 = "stablehlo.rsqrt"(%13) : (tensor<4xf32>) -> tensor<4xf32>
    %15 = "stablehlo.constant"() {value = dense<1.0001221> : tensor<4xf32>} : () -> tensor<4xf32>
    %16 = "stablehlo.multiply"(%10, %15) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %17 = "stablehlo.multiply"(%14, %arg2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %18 = "stablehlo.broadcast_in_dim"(%17) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %19 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %20 = "stablehlo.subtract"(%arg0, %19) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %21 = "stablehlo.multiply"(%20, %18) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %22 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %23 = "stablehlo.add"(%21, %22) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %24 = "stablehlo.add"(%23, %arg1) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %25 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x4x32x32xf32>} : () -> tensor<8x4x32x32xf32>
    %26 = "stablehlo.maximum"(%24, %25) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    "func.return"(%26) : (tensor<8x4x32x32xf32>) -> ()
  }
}
