module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<40x48xf32>, %arg1: tensor<48x64xf32>, %arg2: tensor<64xf32>) -> (tensor<40x64xf32>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<40x48xf32>, tensor<48x64xf32>) -> tensor<40x64xf32>
    %1 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64: 1>} : (tensor<64xf32>) -> tensor<40x64xf32>
    %2 = "stablehlo.add"(%0, %1) : (tensor<40x64xf32>, tensor<40x64xf32>) -> tensor<40x64xf32>
    %3 = "stablehlo.constant"() {value = dense<0.0> : tensor<40x64xf32>} : () -> tensor<40x64xf32>
    %4 = "stablehlo.maximum"(%2, %3) : (tensor<40x64xf32>, tensor<40x64xf32>) -> tensor<40x64xf32>
    "func.return"(%4) : (tensor<40x64xf32>) -> ()
  }
}
