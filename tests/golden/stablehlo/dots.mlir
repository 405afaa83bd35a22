module @dots attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x2x3xf32>, %arg1: tensor<2x3x4xf32>, %arg2: tensor<4x3xf32>) -> (tensor<2x2x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<4x4xf32>, tensor<3x3xf32>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x2x3xf32>, tensor<2x3x4xf32>) -> tensor<2x2x4xf32>
    %1 = "stablehlo.dot_general"(%arg2, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x4xf32>
    %2 = "stablehlo.dot_general"(%arg2, %arg2) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0, 1], rhs_contracting_dimensions = [0, 1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<f32>
    %3 = "stablehlo.convert"(%arg2) : (tensor<4x3xf32>) -> tensor<4x3xbf16>
    %4 = "stablehlo.dot_general"(%3, %3) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x3xbf16>, tensor<4x3xbf16>) -> tensor<4x4xf32>
    %5 = "stablehlo.slice"(%arg2) {start_indices = array<i64: 0, 0>, limit_indices = array<i64: 1, 3>, strides = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %6 = "stablehlo.reshape"(%5) : (tensor<1x3xf32>) -> tensor<3xf32>
    %7 = "stablehlo.dot_general"(%6, %6) {dot_dimension_numbers = #stablehlo.dot<>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3x3xf32>
    "func.return"(%0, %1, %2, %4, %7) : (tensor<2x2x4xf32>, tensor<4x4xf32>, tensor<f32>, tensor<4x4xf32>, tensor<3x3xf32>) -> ()
  }
}
