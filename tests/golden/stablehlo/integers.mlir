module @integers attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<6xi32>, %arg1: tensor<6xi32>, %arg2: tensor<6xui32>) -> (tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xui32>, tensor<6xui32>, tensor<6xui32>, tensor<6xi32>, tensor<6xi32>) {
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %1 = "stablehlo.divide"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %2 = "stablehlo.remainder"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %3 = "stablehlo.and"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %4 = "stablehlo.or"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %5 = "stablehlo.xor"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %6 = "stablehlo.not"(%arg0) : (tensor<6xi32>) -> tensor<6xi32>
    %7 = "stablehlo.shift_left"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %8 = "stablehlo.shift_right_arithmetic"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %9 = "stablehlo.shift_right_logical"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %10 = "stablehlo.abs"(%arg0) : (tensor<6xi32>) -> tensor<6xi32>
    %11 = "stablehlo.sign"(%arg0) : (tensor<6xi32>) -> tensor<6xi32>
    %12 = "stablehlo.negate"(%arg0) : (tensor<6xi32>) -> tensor<6xi32>
    %13 = "stablehlo.popcnt"(%arg2) : (tensor<6xui32>) -> tensor<6xui32>
    %14 = "stablehlo.constant"() {value = dense<1> : tensor<6xui32>} : () -> tensor<6xui32>
    %15 = "stablehlo.minimum"(%arg2, %14) : (tensor<6xui32>, tensor<6xui32>) -> tensor<6xui32>
    %16 = "stablehlo.power"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    %17 = "stablehlo.maximum"(%arg0, %arg1) : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi32>
    "func.return"(%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %arg2, %15, %16, %17) : (tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xi32>, tensor<6xui32>, tensor<6xui32>, tensor<6xui32>, tensor<6xi32>, tensor<6xi32>) -> ()
  }
}
