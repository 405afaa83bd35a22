module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x32x32xf32>, %arg2: tensor<4xf32>) -> (tensor<8x4x32x32xf32>) {
    %0 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 4, 1, 1>, strides = array<i64: 1, 1, 1, 1>} : (tensor<8x4x32x32xf32>) -> tensor<1x4x1x1xf32>
    %1 = "stablehlo.reshape"(%0) : (tensor<1x4x1x1xf32>) -> tensor<4xf32>
    %2 = "stablehlo.constant"() {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
    %3 = "stablehlo.is_finite"(%1) : (tensor<4xf32>) -> tensor<4xi1>
    %4 = "stablehlo.select"(%3, %1, %2) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %6 = "stablehlo.subtract"(%arg0, %5) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %7 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %9 = "stablehlo.reduce"(%6, %7) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %8 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %10 = "stablehlo.constant"() {value = dense<8192.0> : tensor<4xf32>} : () -> tensor<4xf32>
    %11 = "stablehlo.divide"(%9, %10) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %12 = "stablehlo.add"(%4, %11) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %13 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %14 = "stablehlo.subtract"(%6, %13) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %15 = "stablehlo.multiply"(%14, %14) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %17 = "stablehlo.reduce"(%15, %7) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %16 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%16) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %18 = "stablehlo.divide"(%17, %10) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %19 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %20 = "stablehlo.broadcast_in_dim"(%19) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %21 = "stablehlo.add"(%18, %20) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %22 = "stablehlo.rsqrt"(%21) : (tensor<4xf32>) -> tensor<4xf32>
    %23 = "stablehlo.constant"() {value = dense<1.0001221> : tensor<4xf32>} : () -> tensor<4xf32>
    %24 = "stablehlo.multiply"(%18, %23) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %25 = "stablehlo.multiply"(%22, %arg2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %26 = "stablehlo.broadcast_in_dim"(%25) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %27 = "stablehlo.broadcast_in_dim"(%12) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %28 = "stablehlo.subtract"(%arg0, %27) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %29 = "stablehlo.multiply"(%28, %26) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %30 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %31 = "stablehlo.add"(%29, %30) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %32 = "stablehlo.add"(%31, %arg1) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %33 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x4x32x32xf32>} : () -> tensor<8x4x32x32xf32>
    %34 = "stablehlo.maximum"(%32, %33) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    "func.return"(%34) : (tensor<8x4x32x32xf32>) -> ()
  }
}
