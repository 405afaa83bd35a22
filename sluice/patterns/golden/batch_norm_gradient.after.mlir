module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x32x32xf32>, %arg2: tensor<4xf32>, %arg3: tensor<4xf32>) -> (tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>) {
    %4 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %7 = "stablehlo.constant"() {value = dense<8192.0> : tensor<4xf32>} : () -> tensor<4xf32>
    %16 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %0 = "stablehlo.slice"(%arg0) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 4, 1, 1>, strides = array<i64: 1, 1, 1, 1>} : (tensor<8x4x32x32xf32>) -> tensor<1x4x1x1xf32>
    %1 = "stablehlo.reshape"(%0) : (tensor<1x4x1x1xf32>) -> tensor<4xf32>
    %2 = "stablehlo.broadcast_in_dim"(%1) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %3 = "stablehlo.subtract"(%arg0, %2) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %6 = "stablehlo.reduce"(%3, %4) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %5 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%5) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %8 = "stablehlo.divide"(%6, %7) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %9 = "stablehlo.add"(%1, %8) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %10 = "stablehlo.broadcast_in_dim"(%8) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %11 = "stablehlo.subtract"(%3, %10) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %12 = "stablehlo.multiply"(%11, %11) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %14 = "stablehlo.reduce"(%12, %4) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %13 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%13) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0, 2, 3>} : (tensor<8x4x32x32xf32>, tensor<f32>) -> tensor<4xf32>
    %15 = "stablehlo.divide"(%14, %7) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %17 = "stablehlo.broadcast_in_dim"(%16) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
    %18 = "stablehlo.add"(%15, %17) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %19 = "stablehlo.rsqrt"(%18) : (tensor<4xf32>) -> tensor<4xf32>
    %55, %56 = "stablehlo.custom_call"(%arg1, %arg0, %9, %19, %arg2, %arg2) {call_target_name = "sluice_channel_sums", api_version = 4 : i32, has_side_effect = false, backend_config = {}, operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>]} : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    %45 = "stablehlo.constant"() {value = dense<0.00012207031> : tensor<4xf32>} : () -> tensor<4xf32>
    %46 = "stablehlo.multiply"(%55, %45) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %47 = "stablehlo.multiply"(%56, %45) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %57 = "stablehlo.custom_call"(%arg1, %arg0, %9, %19, %arg3, %46, %47, %arg2) {call_target_name = "sluice_normalization_gradient", api_version = 4 : i32, has_side_effect = false, backend_config = {}, operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>], result_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x32x32xf32>
    "func.return"(%57, %56, %55) : (tensor<8x4x32x32xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
  }
}
