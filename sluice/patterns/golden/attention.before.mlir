module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x4x64x64xf32>) -> (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %1 = "stablehlo.constant"() {value = dense<0.125> : tensor<2x4x64x64xf32>} : () -> tensor<2x4x64x64xf32>
    %2 = "stablehlo.multiply"(%0, %1) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %3 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %5 = "stablehlo.reduce"(%2, %3) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %4 = "stablehlo.maximum"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x4x64x64xf32>, tensor<f32>) -> tensor<2x4x64xf32>
    %6 = "stablehlo.broadcast_in_dim"(%5) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xf32>) -> tensor<2x4x64x64xf32>
    %7 = "stablehlo.subtract"(%2, %6) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %8 = "stablehlo.exponential"(%7) : (tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %9 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %11 = "stablehlo.reduce"(%8, %9) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %10 = "stablehlo.add"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%10) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 3>} : (tensor<2x4x64x64xf32>, tensor<f32>) -> tensor<2x4x64xf32>
    %12 = "stablehlo.dot_general"(%8, %arg0) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %13 = "stablehlo.broadcast_in_dim"(%11) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<2x4x64xf32>) -> tensor<2x4x64x64xf32>
    %14 = "stablehlo.divide"(%12, %13) : (tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32>
    %15 = "stablehlo.log"(%11) : (tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %16 = "stablehlo.add"(%5, %15) : (tensor<2x4x64xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    "func.return"(%14, %16) : (tensor<2x4x64x64xf32>, tensor<2x4x64xf32>) -> ()
  }
}
