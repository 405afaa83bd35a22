module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x3x3xf32>, %arg2: tensor<8xf32>) -> (tensor<8x8x32x32xf32>) {
    %0 = "stablehlo.convolution"(%arg0, %arg1) {window_strides = array<i64: 1, 1>, padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 1>, rhs_dilation = array<i64: 1, 1>, window_reversal = array<i1: false, false>, dimension_numbers = #stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x4x32x32xf32>, tensor<8x4x3x3xf32>) -> tensor<8x8x32x32xf32>
    %1 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64: 1>} : (tensor<8xf32>) -> tensor<8x8x32x32xf32>
    %2 = "stablehlo.add"(%0, %1) : (tensor<8x8x32x32xf32>, tensor<8x8x32x32xf32>) -> tensor<8x8x32x32xf32>
    "func.return"(%2) : (tensor<8x8x32x32xf32>) -> ()
  }
}
