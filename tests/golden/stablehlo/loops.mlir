module @loops attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) {
    %0 = "stablehlo.constant"() {value = dense<2.0> : tensor<2xf32>} : () -> tensor<2xf32>
    %1 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %6, %7 = "stablehlo.while"(%1, %arg1) ({
    ^bb0(%b0: tensor<i32>, %b1: tensor<2xf32>):
      %2 = "stablehlo.compare"(%b0, %arg0) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%2) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b2: tensor<i32>, %b3: tensor<2xf32>):
      %3 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %4 = "stablehlo.add"(%b2, %3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %5 = "stablehlo.multiply"(%b3, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      "stablehlo.return"(%4, %5) : (tensor<i32>, tensor<2xf32>) -> ()
    }) : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>)
    "func.return"(%6, %7) : (tensor<i32>, tensor<2xf32>) -> ()
  }
}
