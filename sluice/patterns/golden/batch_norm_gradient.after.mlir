module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x32x32xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>) -> (tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.constant"() {value = dense<8192.0> : tensor<4xf32>} : () -> tensor<4xf32>
    %11 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%arg0, %0) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %1 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%1) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %4 = "stablehlo.divide"(%2, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %6 = "stablehlo.subtract"(%arg0, %5) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %7 = "stablehlo.multiply"(%6, %6) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %9 = "stablehlo.reduce"(%7, %0) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %8 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%8) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %10 = "stablehlo.divide"(%9, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %12 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %13 = "stablehlo.add"(%10, %12) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %14 = "stablehlo.rsqrt"(%13) : (tensor<4xf32>) -> tensor<4xf32>
    %50, %51 = "stablehlo.custom_call"(%arg1, %arg0, %4, %14, %arg2, %arg2) {call_target_name = "sluice_channel_sums", api_version = 4 : i32, has_side_effect = false, backend_config = {}, operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>]} : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %40 = "stablehlo.constant"() {value = dense<0.00012207031> : tensor<4xf32>} : () -> tensor<4xf32>
    %41 = "stablehlo.multiply"(%50, %40) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %42 = "stablehlo.multiply"(%51, %40) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %52 = "stablehlo.custom_call"(%arg1, %arg0, %4, %14, %arg3, %41, %42, %arg2) {call_target_name = "sluice_normalization_gradient", api_version = 4 : i32, has_side_effect = false, backend_config = {}, operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x32x32xf32>
    "func.return"(%52, %51, %50) : (tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }
}
