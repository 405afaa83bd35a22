module @pieces attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4xf32>, %arg1: tensor<2x1xf32>, %arg2: tensor<f32>) -> (tensor<2x2xf32>, tensor<1x4xf32>, tensor<2x0xf32>, tensor<3x6xf32>, tensor<1x3xf32>, tensor<2x6xf32>) {
    %0 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 2>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
    %1 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %2 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 2>, limit_indices = array<i64: 2, 2>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x0xf32>
    %3 = "stablehlo.pad"(%arg0, %arg2) {edge_padding_low = array<i64: 1, 0>, edge_padding_high = array<i64: 0, -1>, interior_padding = array<i64: 0, 1>} : (tensor<2x4xf32>, tensor<f32>) -> tensor<3x6xf32>
    %4 = "stablehlo.pad"(%arg0, %arg2) {edge_padding_low = array<i64: -1, -2>, edge_padding_high = array<i64: 0, 1>, interior_padding = array<i64: 0, 0>} : (tensor<2x4xf32>, tensor<f32>) -> tensor<1x3xf32>
    %5 = "stablehlo.concatenate"(%arg1, %arg0, %arg1) {dimension = 1 : i64} : (tensor<2x1xf32>, tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
    "func.return"(%0, %1, %2, %3, %4, %5) : (tensor<2x2xf32>, tensor<1x4xf32>, tensor<2x0xf32>, tensor<3x6xf32>, tensor<1x3xf32>, tensor<2x6xf32>) -> ()
  }
}
