module @factorizations attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<1x2x2xf64>, %arg1: tensor<1x2x1xf64>) -> (tensor<1x2x2xf64>, tensor<1x2x1xf64>, tensor<1x2x1xf64>, tensor<1x2x1xf64>, tensor<1x1x2xf64>) {
    %0 = "stablehlo.constant"() {value = dense<[[[true, false], [true, true]]]> : tensor<1x2x2xi1>} : () -> tensor<1x2x2xi1>
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<1x2x2xf64>} : () -> tensor<1x2x2xf64>
    %2 = "stablehlo.cholesky"(%arg0) {lower = true} : (tensor<1x2x2xf64>) -> tensor<1x2x2xf64>
    %3 = "stablehlo.select"(%0, %2, %1) : (tensor<1x2x2xi1>, tensor<1x2x2xf64>, tensor<1x2x2xf64>) -> tensor<1x2x2xf64>
    %4 = "stablehlo.reshape"(%arg1) : (tensor<1x2x1xf64>) -> tensor<1x1x2xf64>
    %5 = "stablehlo.triangular_solve"(%3, %arg1) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<1x2x2xf64>, tensor<1x2x1xf64>) -> tensor<1x2x1xf64>
    %6 = "stablehlo.triangular_solve"(%3, %arg1) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<1x2x2xf64>, tensor<1x2x1xf64>) -> tensor<1x2x1xf64>
    %7 = "stablehlo.triangular_solve"(%arg0, %arg1) {left_side = true, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<1x2x2xf64>, tensor<1x2x1xf64>) -> tensor<1x2x1xf64>
    %8 = "stablehlo.triangular_solve"(%3, %4) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<1x2x2xf64>, tensor<1x1x2xf64>) -> tensor<1x1x2xf64>
    "func.return"(%3, %5, %6, %7, %8) : (tensor<1x2x2xf64>, tensor<1x2x1xf64>, tensor<1x2x1xf64>, tensor<1x2x1xf64>, tensor<1x1x2xf64>) -> ()
  }
}
