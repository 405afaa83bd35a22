module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<128x256xf32>, %arg1: tensor<256xf32>) -> (tensor<128x256xf32>, tensor<128x1xf32>, tensor<128x1xf32>) {
    %29 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %30, %31, %32 = "stablehlo.custom_call"(%arg0, %29, %arg1) {call_target_name = "sluice_layer_norm", api_version = 4 : i32, has_side_effect = false, backend_config = {}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>]} : (tensor<128x256xf32>, tensor<f32>, tensor<256xf32>) -> (tensor<128x256xf32>, tensor<128x1xf32>, tensor<128x1xf32>)
    "func.return"(%30, %31, %32) : (tensor<128x256xf32>, tensor<128x1xf32>, tensor<128x1xf32>) -> ()
  }
}
