module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x32x32xf32>, %arg2: tensor<4xf32>) -> (tensor<8x4x32x32xf32>) {
    %0 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 4, 1, 1>, strides = array<i64: 1, 1, 1, 1>} : (tensor<8x4x32x32xf32>) -> tensor<1x4x1x1xf32>
    %1 = "stablehlo.reshape"(%0) : (tensor<1x4x1x1xf32>) -> tensor<4xf32>
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %3 = "stablehlo.subtract"(%arg0, %2) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %6 = "stablehlo.reduce"(%3, %4) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %5 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %7 = "stablehlo.constant"() {value = dense<8192.0> : tensor<4xf32>} : () -> tensor<4xf32>
    %8 = "stablehlo.divide"(%6, %7) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %9 = "stablehlo.add"(%1, %8) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %10 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %11 = "stablehlo.subtract"(%3, %10) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %12 = "stablehlo.multiply"(%11, %11) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %14 = "stablehlo.reduce"(%12, %4) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %13 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%13) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %15 = "stablehlo.divide"(%14, %7) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %16 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %17 = "stablehlo.broadcast_in_dim"(%16) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %18 = "stablehlo.add"(%15, %17) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %19 = "stablehlo.rsqrt"(%18) : (tensor<4xf32>) -> tensor<4xf32>
    %20 = "stablehlo.constant"() {value = dense<1.0001221> : tensor<4xf32>} : () -> tensor<4xf32>
    %21 = "stablehlo.multiply"(%15, %20) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %22 = "stablehlo.multiply"(%19, %arg2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %23 = "stablehlo.broadcast_in_dim"(%22) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %24 = "stablehlo.broadcast_in_dim"(%9) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %25 = "stablehlo.subtract"(%arg0, %24) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %26 = "stablehlo.multiply"(%25, %23) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %27 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %28 = "stablehlo.add"(%26, %27) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %29 = "stablehlo.add"(%28, %arg1) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %30 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x4x32x32xf32>} : () -> tensor<8x4x32x32xf32>
    %31 = "stablehlo.maximum"(%29, %30) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    "func.return"(%31) : (tensor<8x4x32x32xf32>) -> ()
  }
}
