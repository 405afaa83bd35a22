module @binary_float attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<9xf32>, %arg1: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %1 = "stablehlo.subtract"(%arg0, %arg1) : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %2 = "stablehlo.multiply"(%arg0, %arg1) : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %3 = "stablehlo.divide"(%arg0, %arg1) : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %4 = "stablehlo.remainder"(%arg0, %arg1) : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %5 = "stablehlo.abs"(%arg0) : (tensor<9xf32>) -> tensor<9xf32>
    %6 = "stablehlo.power"(%5, %arg1) : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %7 = "stablehlo.compare"(%arg0, %arg0) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xi1>
    %8 = "stablehlo.compare"(%arg0, %arg1) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xi1>
    %9 = "stablehlo.or"(%8, %7) : (tensor<9xi1>, tensor<9xi1>) -> tensor<9xi1>
    %10 = "stablehlo.select"(%9, %arg0, %arg1) : (tensor<9xi1>, tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %11 = "stablehlo.compare"(%arg0, %arg0) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xi1>
    %12 = "stablehlo.compare"(%arg0, %arg1) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xi1>
    %13 = "stablehlo.or"(%12, %11) : (tensor<9xi1>, tensor<9xi1>) -> tensor<9xi1>
    %14 = "stablehlo.select"(%13, %arg0, %arg1) : (tensor<9xi1>, tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %15 = "stablehlo.atan2"(%arg0, %arg1) : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    "func.return"(%0, %1, %2, %3, %4, %6, %10, %14, %15) : (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) -> ()
  }
}
