module @shapes attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<3xf32>, %arg2: tensor<f32>) -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<3x1x2xf32>, tensor<3x2xf32>, tensor<1x1xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = "stablehlo.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
    %1 = "stablehlo.reshape"(%arg1) : (tensor<3xf32>) -> tensor<3x1xf32>
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64: 0, 1>} : (tensor<3x1xf32>) -> tensor<3x2xf32>
    %3 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2xf32>
    %4 = "stablehlo.broadcast_in_dim"(%arg1) {broadcast_dimensions = array<i64: 0>} : (tensor<3xf32>) -> tensor<3x2xf32>
    %5 = "stablehlo.broadcast_in_dim"(%arg0) {broadcast_dimensions = array<i64: 2, 0>} : (tensor<2x3xf32>) -> tensor<3x1x2xf32>
    %6 = "stablehlo.reshape"(%arg0) : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %7 = "stablehlo.reshape"(%arg2) : (tensor<f32>) -> tensor<1x1xf32>
    %8 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %9 = "stablehlo.reverse"(%arg0) {dimensions = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %10 = "stablehlo.reverse"(%arg0) {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    "func.return"(%0, %2, %3, %4, %5, %6, %7, %8, %9, %10) : (tensor<2x3xf32>, tensor<3x2xf32>, tensor<2xf32>, tensor<3x2xf32>, tensor<3x1x2xf32>, tensor<3x2xf32>, tensor<1x1xf32>, tensor<3x2xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> ()
  }
}
