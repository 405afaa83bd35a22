module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x3x3xf32>, %arg2: tensor<8xf32>) -> (tensor<8x8x32x32xf32>) {
    %4 = "stablehlo.custom_call"(%arg0, %arg1, %arg2) {call_target_name = "sluice_convolution", api_version = 4 : i32, has_side_effect = false, backend_config = {kind = 0 : i64, stride = array<i64: 1, 1>, padding = array<i64: 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, channels_first = 1 : i64}, operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>]} : (tensor<8x4x32x32xf32>, tensor<8x4x3x3xf32>, tensor<8xf32>) -> tensor<8x8x32x32xf32>
    "func.return"(%4) : (tensor<8x8x32x32xf32>) -> ()
  }
}
