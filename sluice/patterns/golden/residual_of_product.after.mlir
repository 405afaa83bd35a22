module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<40x48xf32>, %arg1: tensor<48x64xf32>, %arg2: tensor<64xf32>, %arg3: tensor<40x64xf32>) -> (tensor<40x64xf32>) {
    %6 = "stablehlo.custom_call"(%arg0, %arg1, %arg2, %arg3) {call_target_name = "sluice_product", api_version = 4 : i32, has_side_effect = false, backend_config = {transposed_a = 0 : i64, transposed_b = 0 : i64}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[0]> : tensor<1xindex>, dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<40x48xf32>, tensor<48x64xf32>, tensor<64xf32>, tensor<40x64xf32>) -> tensor<40x64xf32>
    "func.return"(%6) : (tensor<40x64xf32>) -> ()
  }
}
