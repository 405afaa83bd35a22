module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x32x32xf32>, %arg2: tensor<4xf32>) -> (tensor<8x4x32x32xf32>) {
    %35 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %36, %37, %38 = "stablehlo.custom_call"(%arg0, %35) {call_target_name = "sluice_moments", api_version = 4 : i32, has_side_effect = false, backend_config = {}, operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>]} : (tensor<8x4x32x32xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %39 = "stablehlo.custom_call"(%arg0, %36, %38, %arg2, %arg2, %arg1) {call_target_name = "sluice_normalize", api_version = 4 : i32, has_side_effect = false, backend_config = {}, operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[1, 3, 2, 0]> : tensor<4xindex>], result_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>]} : (tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    "func.return"(%39) : (tensor<8x4x32x32xf32>) -> ()
  }
}
