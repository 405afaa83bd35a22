module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<40x48xf32>, %arg1: tensor<64x48xf32>) -> (tensor<40x64xf32>) {
    %0 = "stablehlo.transpose"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<64x48xf32>) -> tensor<48x64xf32>
    %1 = "stablehlo.dot_general"(%arg0, %0) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<40x48xf32>, tensor<48x64xf32>) -> tensor<40x64xf32>
    "func.return"(%1) : (tensor<40x64xf32>) -> ()
  }
}
