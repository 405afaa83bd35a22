module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>) -> (tensor<8x4x16x16xf32>) {
    %27 = "stablehlo.custom_call"(%arg0) {call_target_name = "sluice_max_pooling", api_version = 4 : i32, has_side_effect = false, backend_config = {kernel = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>}, operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>], result_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>]} : (tensor<8x4x32x32xf32>) -> tensor<8x4x16x16xf32>
    "func.return"(%27) : (tensor<8x4x16x16xf32>) -> ()
  }
}
