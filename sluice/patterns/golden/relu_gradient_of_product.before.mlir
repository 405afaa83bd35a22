module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<40x48xf32>, %arg1: tensor<48x64xf32>, %arg2: tensor<40x64xf32>) -> (tensor<40x64xf32>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<40x48xf32>, tensor<48x64xf32>) -> tensor<40x64xf32>
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<40x64xf32>} : () -> tensor<40x64xf32>
    %2 = "stablehlo.constant"() {value = dense<1.0> : tensor<40x64xf32>} : () -> tensor<40x64xf32>
    %3 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<40x64xf32>
    %5 = "stablehlo.compare"(%arg2, %4) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<40x64xf32>, tensor<40x64xf32>) -> tensor<40x64xi1>
    %6 = "stablehlo.select"(%5, %1, %0) : (tensor<40x64xi1>, tensor<40x64xf32>, tensor<40x64xf32>) -> tensor<40x64xf32>
    "func.return"(%6) : (tensor<40x64xf32>) -> ()
  }
}
