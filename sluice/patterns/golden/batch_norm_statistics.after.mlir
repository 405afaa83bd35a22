module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<8x4x32x32xf32>, %arg1: tensor<8x4x32x32xf32>, %arg2: tensor<4xf32>) -> (tensor<8x4x32x32xf32>) {
    %27 = "stablehlo.constant"() {value = dense<1.0e-05> : tensor<f32>} : () -> tensor<f32>
    %28, %29, %30 = "stablehlo.custom_call"(%arg0, %27) {call_target_name = "sluice_moments", api_version = 4 : i32, has_side_effect = false, backend_config = {}, operand_layouts = [dense<[1, 3, 2, 0]> : tensor<4xindex>, dense<> : tensor<0xindex>], result_layouts = [dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>, dense<[0]> : tensor<1xindex>]} : (tensor<8x4x32x32xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %17 = "stablehlo.multiply"(%30, %arg2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %18 = "stablehlo.broadcast_in_dim"(%17) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %19 = "stablehlo.broadcast_in_dim"(%28) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %20 = "stablehlo.subtract"(%arg0, %19) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %21 = "stablehlo.multiply"(%20, %18) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %22 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4x32x32xf32>
    %23 = "stablehlo.add"(%21, %22) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %24 = "stablehlo.add"(%23, %arg1) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    %25 = "stablehlo.constant"() {value = dense<0.0> : tensor<8x4x32x32xf32>} : () -> tensor<8x4x32x32xf32>
    %26 = "stablehlo.maximum"(%24, %25) : (tensor<8x4x32x32xf32>, tensor<8x4x32x32xf32>) -> tensor<8x4x32x32xf32>
    "func.return"(%26) : (tensor<8x4x32x32xf32>) -> ()
  }
}
