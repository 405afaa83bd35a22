module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x64x64xf32>) -> (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>) {
    %17 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %18 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %19 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %20, %21 = "stablehlo.custom_call"(%17, %18, %19) {call_target_name = "sluice_attention", api_version = 4 : i32, has_side_effect = false, backend_config = {causal = 0 : i64, scale = 1.25000000000000000e-01 : f64}, operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : tensor<3xindex>]} : (tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>) -> (tensor<2x64x4x64xf32>, tensor<2x4x64xf32>)
    %22 = "stablehlo.transpose"(%20) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x64x4x64xf32>) -> tensor<2x4x64x64xf32>
    "func.return"(%22, %21) : (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>) -> ()
  }
}
