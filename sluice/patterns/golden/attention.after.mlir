module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x64x64xf32>, %arg1: tensor<2xui64>) -> (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2xui64>) {
    %77 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %78 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %79 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %80, %81 = "stablehlo.custom_call"(%77, %78, %79) {call_target_name = "sluice_attention", api_version = 4 : i32, has_side_effect = false, backend_config = {causal = 0 : i64, scale = 1.25000000000000000e-01 : f64}, operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : tensor<3xindex>]} : (tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>) -> (tensor<2x64x4x64xf32>, tensor<2x4x64xf32>)
    %82 = "stablehlo.transpose"(%80) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x64x4x64xf32>) -> tensor<2x4x64x64xf32>
    %17, %18 = "stablehlo.rng_bit_generator"(%arg1) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2x4x64xui32>)
    %19 = "stablehlo.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %83 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %84 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %85 = "stablehlo.transpose"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x64x64xf32>) -> tensor<2x64x4x64xf32>
    %86 = "stablehlo.bitcast_convert"(%18) : (tensor<2x2x4x64xui32>) -> tensor<2x2x4x64xf32>
    %87, %88 = "stablehlo.custom_call"(%83, %84, %85, %86, %19) {call_target_name = "sluice_attention", api_version = 4 : i32, has_side_effect = false, backend_config = {causal = 1 : i64, scale = 1.25000000000000000e-01 : f64, dropout = 1 : i64}, operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : tensor<3xindex>]} : (tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>, tensor<2x64x4x64xf32>, tensor<2x2x4x64xf32>, tensor<f32>) -> (tensor<2x64x4x64xf32>, tensor<2x4x64xf32>)
    %89 = "stablehlo.transpose"(%87) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x64x4x64xf32>) -> tensor<2x4x64x64xf32>
    "func.return"(%82, %81, %89, %88, %arg1) : (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2x4x64x64xf32>, tensor<2x4x64xf32>, tensor<2xui64>) -> ()
  }
}
